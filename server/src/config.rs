//! The configuration file of `covel serve`: a small TOML file with strict fields.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use covel_graph::EffectsPolicy;
use serde::Deserialize;

use crate::{
    error::ServerError,
    load::{Sources, read_text},
};

/// Port when nothing says another.
pub const DEFAULT_PORT: u16 = 3001;

/// The address when nothing says another: this machine only.
pub const DEFAULT_BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    server: Server,
    packages: Packages,
    models: Models,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Server {
    bind: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
    hosts: Vec<String>,
    effects: EffectsPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Packages {
    plugins: Vec<PathBuf>,
    community: Vec<PathBuf>,
    worlds: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Models {
    llm_toml: Option<PathBuf>,
}

/// A configuration with every path resolved against the file's own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Address to listen on.
    pub bind: SocketAddr,
    /// Data folder.
    pub data_dir: Option<PathBuf>,
    /// Host names under which the server may be asked, beside IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// What is done about runtimes of one layer that touch the same thing.
    pub effects: EffectsPolicy,
    /// Trusted packages.
    pub plugins: Vec<PathBuf>,
    /// Community packages.
    pub community: Vec<PathBuf>,
    /// Worlds.
    pub worlds: Vec<PathBuf>,
    /// Model configuration; the offline storyteller when absent.
    pub llm_toml: Option<PathBuf>,
}

impl Config {
    /// Folders to load from.
    pub fn sources(&self) -> Sources {
        Sources { plugins: self.plugins.clone(), community: self.community.clone(), worlds: self.worlds.clone() }
    }
}

/// Reads a configuration file.
///
/// # Errors
/// When it cannot be read, is not TOML, or has an unknown or wrong field; with the line.
pub fn read(path: &Path) -> Result<Config, ServerError> {
    parse(path, &read_text(path)?)
}

fn parse(path: &Path, text: &str) -> Result<Config, ServerError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        ServerError::Config { path: path.to_owned(), line, message: error.message().to_owned() }
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    // `join` keeps an absolute path as it is.
    let all = |paths: Vec<PathBuf>| paths.into_iter().map(|entry| folder.join(entry)).collect();
    Ok(Config {
        bind: file.server.bind.unwrap_or(DEFAULT_BIND),
        data_dir: file.server.data_dir.map(|dir| folder.join(dir)),
        hosts: file.server.hosts,
        effects: file.server.effects,
        plugins: all(file.packages.plugins),
        community: all(file.packages.community),
        worlds: all(file.packages.worlds),
        llm_toml: file.models.llm_toml.map(|file| folder.join(file)),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        match parse(Path::new("/etc/covel/covel.toml"), text) {
            Err(ServerError::Config { line, message, .. }) => (line, message),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "[server]\nbind = \"0.0.0.0:80\"\ndata_dir = \"data\"\nhosts = [\"tales.example\"]\neffects = \"strict\"\n\
                    [packages]\nplugins = [\"plugins\", \"/opt/more\"]\nworlds = [\"worlds\"]\n[models]\nllm_toml = \"llm.toml\"\n";
        let config = parse(Path::new("/etc/covel/covel.toml"), text).unwrap();
        assert_eq!(config.bind.to_string(), "0.0.0.0:80");
        assert_eq!(config.data_dir, Some("/etc/covel/data".into()));
        assert_eq!(config.effects, EffectsPolicy::Strict);
        assert_eq!(config.plugins, [PathBuf::from("/etc/covel/plugins"), PathBuf::from("/opt/more")]);
        assert_eq!(config.llm_toml, Some("/etc/covel/llm.toml".into()));
    }

    #[test]
    fn the_example_in_the_readme_is_right() {
        let readme = include_str!("../README.md");
        let example = readme.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let config = parse(Path::new("/srv/covel.toml"), example).unwrap();
        assert_eq!(config.bind, DEFAULT_BIND);
        assert_eq!(config.hosts, ["tales.example"]);
        assert_eq!(config.worlds, [PathBuf::from("/srv/plugins/worlds")]);
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let config = parse(Path::new("covel.toml"), "").unwrap();
        assert_eq!((config.bind, config.data_dir), (DEFAULT_BIND, None));
    }

    #[test]
    fn mistakes_name_line_and_field() {
        let (line, message) = refused("[server]\nbind = \"127.0.0.1:1\"\nprot = 3\n");
        assert_eq!(line, 3);
        assert!(message.contains("prot") && message.contains("data_dir"), "{message}");
        let (line, message) = refused("[server]\n\nbind = \"nowhere\"\n");
        assert_eq!(line, 3, "{message}");
        let (line, _) = refused("[packages]\nplugins = \"one\"\n");
        assert_eq!(line, 2);
        let (line, _) = refused("[server\n");
        assert_eq!(line, 1);
        let (line, message) = refused("\n[sever]\n");
        assert_eq!(line, 2, "{message}");
    }
}
