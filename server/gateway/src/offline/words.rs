//! Words: matching what a player wrote, quoting it safely, and drawing from pools without a random source.

/// Longest quotation of a player's words, in characters.
const MAX_QUOTE_CHARS: usize = 72;

/// Verbs of going somewhere. A named place alone does not move the story: one may also look at it or ask about it.
const MOVES: &[&str] = &[
    "go",
    "going",
    "goes",
    "walk",
    "head",
    "climb",
    "follow",
    "enter",
    "leave",
    "return",
    "run",
    "row",
    "sail",
    "cross",
    "visit",
    "back",
    "hurry",
    "step",
    "slip",
    "descend",
    "ascend",
    "travel",
    "move",
    "wander",
    "creep",
    "ride",
    "take",
    "set off",
    "make my way",
    "到",
    "去",
    "走",
    "回",
    "进",
    "离开",
    "前往",
    "跟",
    "爬",
    "登",
    "划",
    "穿过",
    "跑",
    "赶往",
    "下到",
];

/// A player message prepared for matching.
pub(super) struct Said {
    raw: String,
    /// Lower-case words separated and surrounded by single spaces.
    words: String,
}

impl Said {
    pub(super) fn new(message: &str) -> Self {
        let raw = message.to_lowercase();
        let mut words = String::from(" ");
        for word in raw.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()) {
            words.push_str(word.trim_matches('\''));
            words.push(' ');
        }
        Self { raw, words }
    }

    /// Does the message name this keyword? ASCII keywords match whole words with common endings, others anywhere.
    pub(super) fn names(&self, keyword: &str) -> bool {
        let keyword = keyword.trim().to_lowercase();
        if keyword.is_empty() {
            return false;
        }
        if !keyword.is_ascii() {
            return self.raw.contains(&keyword);
        }
        let start = format!(" {keyword}");
        self.words.match_indices(&start).any(|(at, _)| {
            let rest = &self.words[at + start.len()..];
            let ending = rest.split(' ').next().unwrap_or_default();
            matches!(ending, "" | "s" | "es" | "ed" | "d" | "ing" | "'s")
        })
    }

    /// How many of the keywords the message names.
    pub(super) fn score(&self, keywords: &[String]) -> usize {
        keywords.iter().filter(|keyword| self.names(keyword)).count()
    }

    /// Does the player want to go somewhere?
    pub(super) fn moves(&self) -> bool {
        MOVES.iter().any(|verb| self.names(verb))
    }
}

/// The player's words, safe inside prose: no line breaks, markup, braces or quotation marks, cut at a word.
pub(super) fn quote(message: &str) -> String {
    let plain: String = message
        .chars()
        .map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c })
        .filter(|c| {
            let invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}');
            !invisible && !"\"“”„«»「」『』`*_#<>{}[]|\\~".contains(*c)
        })
        .collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = plain.trim_end_matches(['.', ',', ';', ':', '。', '，', '；', '：', '…']);
    if plain.chars().count() <= MAX_QUOTE_CHARS {
        return plain.into();
    }
    let cut: String = plain.chars().take(MAX_QUOTE_CHARS).collect();
    let at = cut.rfind(' ').filter(|at| *at > cut.len() / 2).unwrap_or(cut.len());
    format!("{}…", cut[..at].trim_end())
}

/// A number drawn from text parts: equal parts, equal number, on every machine and version.
pub(super) fn draw(parts: &[&str]) -> u64 {
    // FNV-1a over the parts with a separator, then the finishing steps of SplitMix64 to spread the low bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// `number` as an index below `length` (0 when empty).
pub(super) fn index(number: u64, length: usize) -> usize {
    usize::try_from(number % (length.max(1) as u64)).unwrap_or(0)
}

/// A rough token count: one for each Han or kana character, one for four of the others.
pub(super) fn tokens(text: &str) -> u64 {
    let wide = text.chars().filter(|c| is_wide(*c)).count() as u64;
    let other = text.chars().count() as u64 - wide;
    wide + other.div_ceil(4)
}

/// Han, kana and full-width forms, which are written without spaces.
pub(super) fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Cuts prose into pieces of a few words (or Han characters), to be streamed. Joined they give the text again.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let (mut words, mut wide) = (0, 0);
    for c in text.chars() {
        piece.push(c);
        words += usize::from(c.is_whitespace());
        wide += usize::from(is_wide(c));
        if words >= 3 || wide >= 6 {
            pieces.push(std::mem::take(&mut piece));
            (words, wide) = (0, 0);
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_match_words_not_letters() {
        let said = Said::new("I'm asking the ropemaker's daughter about lamps.");
        for keyword in ["ask", "lamp", "ropemaker", "the ropemaker"] {
            assert!(said.names(keyword), "{keyword}");
        }
        for keyword in ["rope", "amp", "daughters", ""] {
            assert!(!said.names(keyword), "{keyword}");
        }
        assert!(Said::new("我去灯塔看看").names("灯塔"));
        assert!(Said::new("我去灯塔看看").moves());
        assert!(!Said::new("I look at the lighthouse").moves());
    }

    #[test]
    fn quotes_carry_no_markup() {
        assert_eq!(quote("  open\n\"the\" **door**. "), "open the door");
        assert_eq!(quote("{title} <b>x</b> \u{202e}y"), "title bx/b y");
        let long = quote(&"word ".repeat(100));
        assert!(long.chars().count() <= MAX_QUOTE_CHARS + 1 && long.ends_with("word…"), "{long}");
        assert_eq!(quote("\u{0}\n"), "");
        assert!(quote(&"汉".repeat(500)).chars().count() <= MAX_QUOTE_CHARS + 1);
    }

    #[test]
    fn draws_are_stable() {
        // A change of these numbers changes every story that was ever seeded.
        assert_eq!(draw(&["a", "b"]), draw(&["a", "b"]));
        assert_ne!(draw(&["a", "b"]), draw(&["ab"]));
        assert_ne!(draw(&["1"]) % 7, draw(&["2"]) % 7);
    }

    #[test]
    fn pieces_join_to_the_text() {
        for text in ["", "one", "One two three four five.\n\nSix seven.", "海雾压得很低，码头上只听见钟声。"]
        {
            assert_eq!(pieces(text).concat(), text);
        }
        assert!(pieces("One two three four five six seven.").len() > 1);
    }
}
