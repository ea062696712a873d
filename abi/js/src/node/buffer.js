import { published } from "covel:kernel";
const { Buffer, kMaxLength, SlowBuffer } = published("covel:buffer");
const constants = Object.freeze({ MAX_LENGTH: kMaxLength });
const { atob, btoa } = globalThis;
export { Buffer, SlowBuffer, constants, kMaxLength, atob, btoa };
export default { Buffer, SlowBuffer, constants, kMaxLength, atob, btoa };
