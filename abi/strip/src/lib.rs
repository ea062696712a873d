//! Takes the types out of TypeScript modules.
//!
//! Types become white space, so lines and columns stay what the author wrote. Only erasable syntax is accepted: `enum`,
//! `namespace`, parameter properties and `import =` have a meaning at run time and are refused with their position.
//! It is a crate of its own because the parser is heavy and rarely changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swc_common::{
    GLOBALS, Globals, SourceMap, Span,
    errors::{DiagnosticBuilder, Emitter, HANDLER, Handler},
    sync::Lrc,
};
use swc_ts_fast_strip::{Mode, Options, operate};

/// TypeScript that cannot become JavaScript by leaving types out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct StripError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The first diagnostic of the parser.
struct First(std::sync::Arc<std::sync::Mutex<Option<StripError>>>, Lrc<SourceMap>);

impl Emitter for First {
    fn emit(&mut self, diagnostic: &mut DiagnosticBuilder<'_>) {
        let span: Option<Span> = diagnostic.span.primary_span();
        let (line, column) = span.filter(|s| !s.is_dummy()).map_or((1, 1), |span| {
            let at = self.1.lookup_char_pos(span.lo());
            (at.line, at.col.0 + 1)
        });
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert_with(|| StripError { line, column, message: diagnostic.message() });
        }
    }
}

/// The JavaScript of a TypeScript module.
///
/// # Errors
/// When the text does not parse, or uses syntax that is more than types.
pub fn strip(source: &str) -> Result<String, StripError> {
    let map: Lrc<SourceMap> = Lrc::default();
    let first = std::sync::Arc::default();
    let handler = Handler::with_emitter(true, false, Box::new(First(std::sync::Arc::clone(&first), map.clone())));
    let options =
        Options { module: Some(true), mode: Mode::StripOnly, filename: Some("module.ts".into()), ..Options::default() };
    // The parser is not ours: a panic of it is an error of this file, not of the host.
    let result = catch_unwind(AssertUnwindSafe(|| {
        GLOBALS.set(&Globals::new(), || HANDLER.set(&handler, || operate(&map, &handler, source.to_owned(), options)))
    }));
    let found = first.lock().ok().and_then(|mut first| first.take());
    match (result, found) {
        (Ok(Ok(output)), None) => Ok(output.code),
        (_, Some(error)) => Err(error),
        (Ok(Err(error)), None) => Err(StripError { line: 1, column: 1, message: error.message }),
        (Err(_), None) => {
            Err(StripError { line: 1, column: 1, message: "the TypeScript parser failed on this file".into() })
        }
    }
}
