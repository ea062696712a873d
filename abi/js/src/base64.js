// atob and btoa, as the HTML standard has them.
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES = new Map([...ALPHABET].map((letter, value) => [letter, value]));
const invalid = (message) => new DOMException(message, "InvalidCharacterError");

export function btoa(text) {
  if (arguments.length === 0) throw new TypeError("The \"data\" argument must be specified");
  const input = `${text}`;
  const out = [];
  for (let i = 0; i < input.length; i += 3) {
    const [a, b, c] = [input.charCodeAt(i), input.charCodeAt(i + 1), input.charCodeAt(i + 2)];
    if (a > 255 || b > 255 || c > 255) throw invalid("Invalid character");
    out.push(ALPHABET[a >> 2], ALPHABET[((a & 3) << 4) | (b >> 4)], Number.isNaN(b) ? "=" : ALPHABET[((b & 15) << 2) | (c >> 6)], Number.isNaN(c) ? "=" : ALPHABET[c & 63]);
  }
  return out.join("");
}

export function atob(text) {
  if (arguments.length === 0) throw new TypeError("The \"data\" argument must be specified");
  let input = `${text}`.replace(/[\t\n\f\r ]/g, "");
  if (input.length % 4 === 0) input = input.replace(/={1,2}$/, "");
  if (input.length % 4 === 1) throw invalid("The string to be decoded is not correctly encoded.");
  const out = [];
  let [bits, count] = [0, 0];
  for (const letter of input) {
    const value = VALUES.get(letter);
    if (value === undefined) throw invalid("Invalid character");
    bits = ((bits << 6) | value) & 0xffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push(String.fromCharCode((bits >> count) & 255));
    }
  }
  return out.join("");
}
