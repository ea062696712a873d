//! Which modules plugin code may import, and where their code comes from. SDK-1, SDK-4

use std::sync::Arc;

use rquickjs::{
    Ctx, Error, Exception, Module, Result,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use crate::{builtin, engine::bytecode, generation::Blueprint, limits::MAX_MODULE_BYTES};

/// Prefix with which the kernel names a file of the package.
const PACKAGE: &str = "package:";
const EXTENSIONS: &[&str] = &["js", "mjs", "ts", "mts"];

/// Throws an error named `ModuleError`, which the kernel tells apart from what plugin code throws.
pub(crate) fn refuse(ctx: &Ctx<'_>, message: &str) -> Error {
    match Exception::from_message(ctx.clone(), message) {
        Ok(exception) => {
            let named = exception
                .as_object()
                .set("name", "ModuleError")
                .and_then(|()| exception.as_object().set("code", "module-invalid"));
            match named {
                Ok(()) => exception.throw(),
                Err(error) => error,
            }
        }
        Err(error) => error,
    }
}

/// Resolves specifiers of one package.
pub(crate) struct PackageResolver(pub(crate) Blueprint);

impl PackageResolver {
    fn file_of<'a>(&self, module: &'a str) -> Option<&'a str> {
        module.strip_prefix(self.0.spec.plugin_id.as_str())?.strip_prefix('/')
    }

    fn find(&self, ctx: &Ctx<'_>, importer: &str, specifier: &str, path: &str) -> Result<String> {
        let extension =
            path.rsplit_once('/').map_or(path, |(_, file)| file).rsplit_once('.').map(|(_, extension)| extension);
        if self.0.spec.files.read(path).is_none() {
            let near = EXTENSIONS
                .iter()
                .flat_map(|e| [format!("{path}.{e}"), format!("{path}/index.{e}"), swap_extension(path, e)])
                .find(|candidate| candidate != path && self.0.spec.files.read(candidate).is_some());
            let hint = match near {
                Some(near) => format!("; did you mean {near}? Imports name real files, with their real suffix"),
                None => String::new(),
            };
            return Err(refuse(
                ctx,
                &format!("{importer}: cannot import `{specifier}`: the package has no file {path}{hint}"),
            ));
        }
        if !extension.is_some_and(|e| EXTENSIONS.contains(&e)) {
            return Err(refuse(
                ctx,
                &format!("{importer}: cannot import `{specifier}`: modules end in .js, .mjs, .ts or .mts"),
            ));
        }
        Ok(format!("{}/{path}", self.0.spec.plugin_id))
    }
}

fn swap_extension(path: &str, extension: &str) -> String {
    path.rsplit_once('.').map_or_else(|| path.to_owned(), |(stem, _)| format!("{stem}.{extension}"))
}

/// Joins a relative specifier to the folder of its importer; `None` when it leaves the package.
pub(crate) fn join(importer: &str, specifier: &str) -> Option<String> {
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

impl Resolver for PackageResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if attributes.is_some_and(|a| a.keys().next().is_some()) {
            return Err(refuse(
                ctx,
                &format!(
                    "{base}: cannot import `{name}`: import attributes are not supported; export data from a module"
                ),
            ));
        }
        let Some(importer) = self.file_of(base) else {
            // A host module, or the host itself.
            if let Some(path) = name.strip_prefix(PACKAGE) {
                return self.find(ctx, "the manifest", path, path);
            }
            let name = name.strip_prefix("./").map_or_else(|| name.to_owned(), |rest| format!("covel:{rest}"));
            return match builtin::source(&name) {
                Some(_) => Ok(name),
                None => Err(refuse(ctx, &format!("{base}: there is no host module `{name}`"))),
            };
        };
        if name.starts_with("./") || name.starts_with("../") || name == "." || name == ".." {
            return match join(importer, name) {
                Some(path) => self.find(ctx, importer, name, &path),
                None => Err(refuse(ctx, &format!("{importer}: cannot import `{name}`: it leaves the package"))),
            };
        }
        if let Some(module) = builtin::importable(name) {
            return Ok(module.to_owned());
        }
        Err(refuse(
            ctx,
            &format!(
                "{importer}: cannot import `{name}`: plugin code imports its own files by relative path, and {}",
                builtin::IMPORTABLE
            ),
        ))
    }
}

/// Loads what [`PackageResolver`] resolved.
pub(crate) struct PackageLoader(pub(crate) Blueprint);

impl Loader for PackageLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let spec = &self.0.spec;
        let Some(path) = name.strip_prefix(spec.plugin_id.as_str()).and_then(|rest| rest.strip_prefix('/')) else {
            let image = bytecode::host_module(name).map_err(|error| refuse(ctx, &error.0))?;
            return bytecode::declare(ctx, &image);
        };
        let known = self.0.images.lock().get(path).cloned();
        let image = match known {
            Some(image) => image,
            None => {
                let bytes: Arc<[u8]> =
                    spec.files.read(path).ok_or_else(|| refuse(ctx, &format!("the package has no file {path}")))?;
                let image = bytecode::package_module(name, &bytes, || source_text(path, &bytes))
                    .map_err(|error| refuse(ctx, &error.0))?;
                self.0.images.lock().insert(path.to_owned(), image.clone());
                image
            }
        };
        let module = bytecode::declare(ctx, &image)?;
        module.meta()?.set("url", format!("file:///{path}"))?;
        Ok(module)
    }
}

/// JavaScript text of a module file.
fn source_text(path: &str, bytes: &[u8]) -> std::result::Result<String, String> {
    if bytes.len() > MAX_MODULE_BYTES {
        return Err(format!("{path}: larger than {MAX_MODULE_BYTES} bytes"));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("{path}: not UTF-8 text (byte {})", error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if path.ends_with(".ts") || path.ends_with(".mts") {
        return covel_strip::strip(text).map_err(|error| format!("{path}:{error}"));
    }
    Ok(text.to_owned())
}
