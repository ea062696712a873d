import { publish } from "covel:kernel";
import { Buffer, kMaxLength, SlowBuffer } from "buffer";
publish("node:buffer", { Buffer });
const constants = Object.freeze({ MAX_LENGTH: kMaxLength });
const { atob, btoa } = globalThis;
export { Buffer, SlowBuffer, constants, kMaxLength, atob, btoa };
export default { Buffer, SlowBuffer, constants, kMaxLength, atob, btoa };
