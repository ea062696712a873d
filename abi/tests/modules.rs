//! Which modules plugin code may import, and how TypeScript is loaded.
#![allow(clippy::unwrap_used)]

mod support;

use covel_abi::CallError;
use serde_json::{Value, json};
use support::{handler, host, load, request, run};

async fn with(files: &[(&str, &str)], module: &str) -> Result<Value, CallError> {
    let host = host();
    let generation = load(&host, "p", files).await;
    run(&host, request(&generation, handler(module))).await
}

/// Covers: SDK-4
#[tokio::test]
async fn relative_imports_name_real_files() {
    let files = [
        (
            "a/h.js",
            "import { x } from '../lib/x.mjs'; import { y } from './y.ts'; export default async () => [x, y, (await import('./z.mts')).z, import.meta.url]",
        ),
        ("lib/x.mjs", "export const x = 'x'"),
        ("a/y.ts", "import type { T } from './types.ts';\nexport const y: string = 'y' as T"),
        ("a/z.mts", "interface A { n: number }\nexport const z = ({ n: 1 } satisfies A).n"),
    ];
    assert_eq!(with(&files, "a/h.js").await.unwrap(), json!(["x", "y", 1, "file:///a/h.js"]));
}

/// Covers: SDK-4
#[tokio::test]
async fn what_may_not_be_imported_is_named_with_what_to_use() {
    let cases = [
        ("import './y'; export default () => 1", "did you mean y.ts"),
        ("import './y.js'; export default () => 1", "did you mean y.ts"),
        ("import './none.js'; export default () => 1", "no file none.js"),
        ("import '../up.js'; export default () => 1", "leaves the package"),
        ("import './a/../../up.js'; export default () => 1", "leaves the package"),
        ("import '/etc/passwd'; export default () => 1", "relative path"),
        ("import 'file:///y.ts'; export default () => 1", "relative path"),
        ("import 'lodash'; export default () => 1", "`zod`"),
        ("import 'node:fs'; export default () => 1", "`node:path`"),
        ("import 'fs'; export default () => 1", "`node:path`"),
        ("import 'covel:kernel'; export default () => 1", "relative path"),
        ("import 'package:y.ts'; export default () => 1", "relative path"),
        ("import data from './data.json'; export default () => 1", "modules end in"),
        ("import { none } from './y.ts'; export default () => 1", "none"),
        ("export const x = 1", "no default function"),
        ("export default 7", "no default function"),
        ("export default async () => {\n  let a = 1\n  let a = 2\n}", "h.js:3"),
    ];
    for (code, expected) in cases {
        let files = [("h.js", code), ("y.ts", "export const y: number = 1"), ("data.json", "{}")];
        match with(&files, "h.js").await {
            Err(CallError::Load { message }) => {
                assert!(message.contains(expected), "{code}: {message}")
            }
            other => panic!("{code}: {other:?}"),
        }
    }
    match with(&[], "gone.js").await {
        Err(CallError::Load { message }) => assert!(message.contains("gone.js"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn typescript_keeps_the_authors_positions() {
    let files = [(
        "h.ts",
        "type Long = { a: number,\n  b: string };\nexport default async (ctx: Long): Promise<never> => {\n  const x: Long | undefined = undefined as any; throw new Error('here');\n}",
    )];
    match with(&files, "h.ts").await {
        Err(CallError::Thrown { stack, .. }) => assert!(stack.as_deref().unwrap().contains("p/h.ts:4:59"), "{stack:?}"),
        other => panic!("{other:?}"),
    }
    for (source, expected) in
        [("enum A { B }\nexport default () => A.B", "h.ts:1:1"), ("export default () => {\n  const = 1\n}", "h.ts:2:9")]
    {
        match with(&[("h.ts", source)], "h.ts").await {
            Err(CallError::Load { message }) => assert!(message.contains(expected), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn cyclic_imports_and_top_level_await_work() {
    let files = [
        (
            "h.js",
            "import { b } from './b.js'; export const a = await Promise.resolve('a'); export default () => [a, b()]",
        ),
        ("b.js", "import { a } from './h.js'; export const b = () => `b${a}`"),
    ];
    assert_eq!(with(&files, "h.js").await.unwrap(), json!(["a", "ba"]));
}

#[tokio::test]
async fn host_modules_do_what_they_say() {
    let code = r#"
        import { z } from "zod";
        import path, { join } from "node:path";
        import { createHash, createHmac, randomInt, randomUUID } from "crypto";
        import { Buffer } from "node:buffer";
        import assert from "node:assert";
        import { format, isDeepStrictEqual } from "node:util";
        import { fileURLToPath } from "node:url";
        import { setTimeout as later } from "node:timers";
        import { shortId } from "@covel/plugin-handlers-utils";
        import * as points from "@covel/plugin-handlers-utils/extension-points";
        export default async () => {
            assert.deepEqual({ a: [1] }, { a: [1] });
            assert.throws(() => assert.equal(1, 2), /expected 2, got 1/);
            await new Promise((resolve) => later(resolve, 1));
            const n = randomInt(3, 5);
            return {
                zod: z.object({ a: z.string() }).safeParse({ a: 1 }).error.issues[0].message,
                path: [join("a", "..", "b"), path.extname("x.y")],
                sha: createHash("sha256").update("ab").update("c").digest("hex"),
                md5: createHash("md5").update("").digest("base64"),
                hmac: createHmac("sha256", "key").update("The quick brown fox jumps over the lazy dog").digest("hex"),
                n: n === 3 || n === 4,
                uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(randomUUID()),
                buffer: Buffer.from("héllo").toString("base64"),
                format: format("%s %d %j", "a", 1, { b: 2 }),
                deep: isDeepStrictEqual(new Map([[1, { a: 1 }]]), new Map([[1, { a: 1 }]])),
                file: fileURLToPath(import.meta.url),
                id: /^x-a-b-[0-9a-f]{8}$/.test(shortId("x", "A & B", "s")),
                points: typeof points,
            };
        };"#;
    assert_eq!(
        with(&[("lib/h.js", code)], "lib/h.js").await.unwrap(),
        json!({
            "zod": "Invalid input: expected string, received number",
            "path": ["b", ".y"],
            "sha": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "md5": "1B2M2Y8AsgTpgAmY7PhCfg==",
            "hmac": "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8",
            "n": true,
            "uuid": true,
            "buffer": "aMOpbGxv",
            "format": "a 1 {\"b\":2}",
            "deep": true,
            "file": "/lib/h.js",
            "id": true,
            "points": "object",
        })
    );
}
