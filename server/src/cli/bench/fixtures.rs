//! What is played: packages and models that cost next to nothing themselves, so that what is measured is the engine.

use std::sync::Arc;

use covel_exec::{NativeContext, NativeOutput, NativePackage};
use covel_graph::{
    Stage,
    fragment::{NeedDecl, RuntimeDecl},
    package::{Discovery, Package, compile_in_memory},
};
use covel_model::{FinishReason, Gateway, ModelEvent, ModelRequest, ModelStream, Role, ToolCall, Usage};
use futures_util::stream;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::error::ServerError;

/// `count` runtimes that do nothing, each needing those that `needs` names by place.
pub(super) fn no_ops(count: usize, needs: impl Fn(usize) -> Vec<usize>) -> NativePackage {
    native("bench", count, needs, || |_: &NativeContext<'_>| Ok(NativeOutput::default()))
}

/// `count` runtimes in five layers that each read a record of about 1 KB and write it anew.
pub(super) fn read_write(count: usize) -> NativePackage {
    let width = count.div_ceil(5);
    let place = std::cell::Cell::new(0);
    native(
        "bench",
        count,
        |at| at.checked_sub(width).into_iter().collect(),
        || {
            let key = format!("k{:04}", place.replace(place.get() + 1));
            let text = "x".repeat(1_000);
            move |context: &NativeContext<'_>| {
                let before = context.get("log", &key).map_err(|error| error.message)?;
                let turns = before.and_then(|value| value.value()["n"].as_u64()).unwrap_or(0);
                context
                    .set("log", &key, json!({"n": turns + 1, "text": text}).into())
                    .map_err(|error| error.message)?;
                Ok(NativeOutput::default())
            }
        },
    )
}

fn native<R: covel_exec::NativeRuntime>(
    id: &str,
    count: usize,
    needs: impl Fn(usize) -> Vec<usize>,
    run: impl Fn() -> R,
) -> NativePackage {
    (0..count).fold(NativePackage::new(id), |package, at| {
        let mut decl = RuntimeDecl { stage: Some(Stage::PreTurn), ..RuntimeDecl::default() };
        decl.needs.extend(
            needs(at)
                .into_iter()
                .map(|needed| NeedDecl { runtime: Some(format!("{id}/r{needed:04}")), ..NeedDecl::default() }),
        );
        package.add(&format!("r{at:04}"), decl, run())
    })
}

/// `count` packages of one JavaScript runtime that reads its context and one record and writes one of about 1 KB.
pub(super) fn javascript(count: usize) -> Result<Vec<Arc<Package>>, ServerError> {
    let code = "export default async (ctx) => {
        const before = await ctx.pluginData.get('log', 'last');
        const words = ctx.playerMessage.split(' ').length;
        const value = { n: (before?.n ?? 0) + 1, words, text: 'x'.repeat(900) };
        await ctx.pluginData.set('log', 'last', value);
        return { outcome: 'success', value: { n: value.n, locale: ctx.locale } };
    };";
    (0..count)
        .map(|at| {
            let manifest = format!(
                "---\nid: bench-{at:02}\nkind: plugin\ndescription: Measured.\nruntime:\n  type: function\n  \
                 schedule: {{ stage: pre-turn }}\n  function: {{ handler: ./handler.js }}\n---\n"
            );
            compiled(&[("PLUGIN.md", &manifest), ("handler.js", code)])
        })
        .collect()
}

/// A story agent with one tool.
pub(super) fn agent() -> Result<Arc<Package>, ServerError> {
    compiled(&[(
        "PLUGIN.md",
        "---\nid: teller\nkind: plugin\ndescription: Measured.\nruntime:\n  type: agent\n  \
         schedule: { stage: narrative }\n  io: { visibility: story }\n  \
         agent: { model: story, tools: { builtin: [plugin-data-get] }, loop: { maxSteps: 40, loopDetection: 0 } }\n---\nTell.\n",
    )])
}

fn compiled(files: &[(&str, &str)]) -> Result<Arc<Package>, ServerError> {
    let compiled = compile_in_memory(files, Discovery::Builtin);
    compiled.package.ok_or(ServerError::Packages(compiled.diagnostics))
}

/// A model that answers at once: with a tool call until `calls` of them were answered, then with a sentence.
pub(super) struct Instant {
    pub(super) calls: usize,
}

impl Gateway for Instant {
    fn stream(&self, request: ModelRequest, _: CancellationToken) -> ModelStream {
        let answered = request.messages.iter().filter(|message| message.role == Role::Tool).count();
        let (event, finish) = if answered < self.calls {
            let call = ToolCall {
                id: format!("c{answered}"),
                name: "plugin-data-get".to_owned(),
                arguments: r#"{"namespace":"log","key":"last"}"#.to_owned(),
            };
            (ModelEvent::ToolCall(call), FinishReason::ToolCalls)
        } else {
            (ModelEvent::Text("The harbour is quiet tonight, and the bell counts.".to_owned()), FinishReason::Stop)
        };
        let done = ModelEvent::Done { finish, usage: Usage::default(), model: None };
        Box::pin(stream::iter([Ok(event), Ok(done)]))
    }

    fn name(&self) -> &str {
        "instant"
    }
}
