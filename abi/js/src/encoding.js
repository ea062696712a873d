import { publish } from "covel:kernel";
import { TextDecoder, TextEncoder } from "@exodus/bytes/encoding-lite.js";
publish("covel:encoding", { TextDecoder, TextEncoder });
