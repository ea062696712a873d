//! Time and chance come from the host of the call that runs.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_abi::CallRequest;
use serde_json::{Value, json};
use support::{FakeHost, handler, host, load, request, run};

const ASKS: &str = "import { randomUUID, randomBytes } from 'node:crypto';
    export default async () => {
        const first = [Date.now(), new Date().getTime(), Math.random(), performance.now(), crypto.randomUUID()];
        await new Promise((resolve) => setTimeout(resolve, 1));
        return [first, [Date.now(), randomUUID(), randomBytes(2)[1], new Date().toISOString()]];
    }";

async fn ask(given: Option<u8>, code: &str) -> Value {
    let host = host();
    let generation = load(&host, "p", &[("h.js", code)]).await;
    let host_side = Arc::new(FakeHost { given, ..FakeHost::default() });
    run(&host, CallRequest { host: host_side, ..request(&generation, handler("h.js")) }).await.unwrap()
}

#[tokio::test]
async fn a_host_that_gives_them_is_asked_also_after_a_wait() {
    let uuid = "04040404-0404-4404-8404-040404040404";
    let expected = json!([[1004, 1004, 0.25, 2, uuid], [1004, uuid, 4, "1970-01-01T00:00:01.004Z"]]);
    assert_eq!(ask(Some(4), ASKS).await, expected);
}

#[tokio::test]
async fn a_host_that_does_not_leaves_them_to_the_system() {
    let answer = ask(None, ASKS).await;
    assert!(answer[0][0].as_u64().unwrap() > 1_700_000_000_000);
    let chance = answer[0][2].as_f64().unwrap();
    assert!((0.0..1.0).contains(&chance));
    assert_ne!(answer[0][4], answer[1][1]);
}

#[tokio::test]
async fn dates_are_still_dates() {
    let code = "export default () => {
        class Mine extends Date { year() { return this.getUTCFullYear() } }
        const mine = new Mine(2020, 1, 1);
        return [
            new Date(0).toISOString(), new Date(2020, 0, 2, 3).getHours(), new Date('2020-01-01T00:00:00Z').getTime(),
            Date.UTC(2020, 0), Date.parse('1970-01-01T00:00:00.001Z'), typeof Date(), new Date(0) instanceof Date,
            new Date(5).constructor === Date, Date.name, Date.length, mine instanceof Date, mine instanceof Mine,
            mine.year(), Object.keys(Date), JSON.stringify({ d: new Date(0) }), new Date(new Date(7)).getTime(),
            Number.isNaN(new Date(undefined).getTime()), Math.random.name, Date.now.name,
        ];
    }";
    let expected = json!([
        "1970-01-01T00:00:00.000Z",
        3,
        1_577_836_800_000_u64,
        1_577_836_800_000_u64,
        1,
        "string",
        true,
        true,
        "Date",
        7,
        true,
        true,
        2020,
        [],
        "{\"d\":\"1970-01-01T00:00:00.000Z\"}",
        7,
        true,
        "random",
        "now"
    ]);
    assert_eq!(ask(Some(1), code).await, expected);
}
