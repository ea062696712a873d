//! What an author's editor and Node.js need of the host: the SDK and zod as packages below `node_modules`, the same code
//! isolates preload. SDK-1, SDK-5

include!(concat!(env!("OUT_DIR"), "/author.rs"));
