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

use crate::{builtin, limits::MAX_IMAGE_CACHE_BYTES};

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

/// Compiled package modules by the digest of their name and source, so that a reload compiles only what changed.
static PACKAGE_MODULES: OnceLock<Mutex<Cache>> = OnceLock::new();

#[derive(Default)]
struct Cache {
    images: HashMap<blake3::Hash, (u64, Image)>,
    bytes: usize,
    clock: u64,
}

impl Cache {
    fn get(&mut self, key: &blake3::Hash) -> Option<Image> {
        self.clock += 1;
        let (used, image) = self.images.get_mut(key)?;
        *used = self.clock;
        Some(image.clone())
    }

    fn put(&mut self, key: blake3::Hash, image: Image) {
        if image.0.len() > MAX_IMAGE_CACHE_BYTES {
            return;
        }
        self.clock += 1;
        self.bytes += image.0.len();
        if let Some((_, old)) = self.images.insert(key, (self.clock, image)) {
            self.bytes -= old.0.len();
        }
        while self.bytes > MAX_IMAGE_CACHE_BYTES {
            let Some(oldest) = self.images.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key) else {
                break;
            };
            if let Some((_, old)) = self.images.remove(&oldest) {
                self.bytes -= old.0.len();
            }
        }
    }
}

/// The image of a module of a package, compiled now unless this process compiled the same source under the same name
/// before. `text` makes JavaScript of the source; it is only asked when there is something to compile.
pub(crate) fn package_module(
    name: &str,
    source: &[u8],
    text: impl FnOnce() -> Result<String, String>,
) -> Result<Image, CompileError> {
    // The length in front keeps name and source apart.
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(source);
    let key = hasher.finalize();
    let cache = PACKAGE_MODULES.get_or_init(Mutex::default);
    if let Some(image) = cache.lock().get(&key) {
        return Ok(image);
    }
    let image = compile(name, &text().map_err(CompileError)?)?;
    cache.lock().put(key, image.clone());
    Ok(image)
}

/// Declares a compiled module in a context.
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, image: &Image) -> rquickjs::Result<Module<'js, Declared>> {
    // SAFETY: an `Image` is only made by `compile` above, in this process, by this build of the engine, and is
    // immutable; the engine additionally checks its version and checksum.
    unsafe { Module::load(ctx.clone(), &image.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_forgets_what_was_not_used_for_longest() {
        let image = |size: usize| Image(vec![0_u8; size].into());
        let key = |n: u8| blake3::hash(&[n]);
        let mut cache = Cache::default();
        cache.put(key(1), image(MAX_IMAGE_CACHE_BYTES / 2));
        cache.put(key(2), image(MAX_IMAGE_CACHE_BYTES / 2));
        assert!(cache.get(&key(1)).is_some());
        cache.put(key(3), image(1));
        assert!(cache.get(&key(2)).is_none());
        assert!(cache.get(&key(1)).is_some() && cache.get(&key(3)).is_some());
        assert_eq!(cache.bytes, MAX_IMAGE_CACHE_BYTES / 2 + 1);
        cache.put(key(4), image(MAX_IMAGE_CACHE_BYTES + 1));
        assert!(cache.get(&key(4)).is_none());
    }

    #[test]
    fn the_same_source_under_the_same_name_is_compiled_once() {
        let made = |name: &str, source: &str| {
            let mut asked = false;
            let image = package_module(name, source.as_bytes(), || {
                asked = true;
                Ok(source.to_owned())
            });
            assert!(image.is_ok());
            asked
        };
        assert!(made("cached/a.js", "export default 1"));
        assert!(!made("cached/a.js", "export default 1"));
        assert!(made("cached/a.js", "export default 2"));
        assert!(made("cached/b.js", "export default 1"));
        assert!(package_module("cached/c.js", b"export default", || Ok("export default".to_owned())).is_err());
    }
}
