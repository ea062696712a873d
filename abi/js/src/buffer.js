import { publish } from "covel:kernel";
import { Buffer, kMaxLength, SlowBuffer } from "buffer";
publish("covel:buffer", { Buffer, kMaxLength, SlowBuffer });
