//! Compiling modules, and the one place that loads byte code. Byte code never comes from outside this process.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use rquickjs::{
    CatchResultExt, Context, Ctx, Error, Module, Runtime, WriteOptions,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use crate::builtin;

/// Compiled modules this process has made: one image for each host module, shared by all isolates.
static HOST_MODULES: OnceLock<Mutex<HashMap<&'static str, Image>>> = OnceLock::new();

/// Byte code made by [`compile`] in this process.
#[derive(Clone)]
pub(crate) struct Image(Arc<[u8]>);

/// A module that does not parse.
#[derive(Clone, Debug)]
pub(crate) struct CompileError(pub(crate) String);

/// The compiler looks for imported modules, though nothing of them goes into the byte code: it is shown empty ones.
struct AnyName;
struct Nothing;

impl Resolver for AnyName {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        _: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Ok(name.to_owned())
    }
}

impl Loader for Nothing {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        Module::declare(ctx.clone(), name, "")
    }
}

/// Compiles a module under the name it will have in stack traces and in the module table.
pub(crate) fn compile(name: &str, source: &str) -> Result<Image, CompileError> {
    let internal = |error: Error| CompileError(format!("{name}: cannot be compiled: {error}"));
    // Plugin contexts have no compiler, so compiling happens in a runtime of its own that no plugin code ever enters.
    let runtime = Runtime::new().map_err(internal)?;
    runtime.set_memory_limit(128 * 1024 * 1024);
    runtime.set_loader(AnyName, Nothing);
    let context = Context::full(&runtime).map_err(internal)?;
    context.with(|ctx| {
        let module =
            Module::declare(ctx.clone(), name, source).catch(&ctx).map_err(|error| syntax_error(name, &error))?;
        let bytes = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() }).map_err(internal)?;
        Ok(Image(bytes.into()))
    })
}

fn syntax_error(name: &str, error: &rquickjs::CaughtError<'_>) -> CompileError {
    if let rquickjs::CaughtError::Exception(exception) = error {
        let message = exception.message().unwrap_or_default();
        let place = exception
            .stack()
            .and_then(|stack| stack.lines().find_map(|line| Some(line.trim().strip_prefix("at ")?.to_owned())))
            .map(|line| line.trim_start_matches('(').trim_end_matches(')').to_owned());
        return CompileError(match place {
            Some(place) => format!("{place}: SyntaxError: {message}"),
            None => format!("{name}: SyntaxError: {message}"),
        });
    }
    CompileError(format!("{name}: {error}"))
}

/// The compiled image of a host module.
pub(crate) fn host_module(name: &str) -> Result<Image, CompileError> {
    let table = HOST_MODULES.get_or_init(|| Mutex::new(HashMap::new()));
    if let Some(image) = table.lock().get(name) {
        return Ok(image.clone());
    }
    let Some((name, source)) = builtin::MODULES.iter().find(|(n, _)| *n == name) else {
        return Err(CompileError(format!("there is no host module {name}")));
    };
    let image = compile(name, source)?;
    table.lock().insert(name, image.clone());
    Ok(image)
}

/// Declares a compiled module in a context.
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, image: &Image) -> rquickjs::Result<Module<'js, Declared>> {
    // SAFETY: an `Image` is only made by `compile` above, in this process, by this build of the engine, and is
    // immutable; the engine additionally checks its version and checksum.
    unsafe { Module::load(ctx.clone(), &image.0) }
}
