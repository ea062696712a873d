//! The covel server.
