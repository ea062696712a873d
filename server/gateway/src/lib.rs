//! Language models for Covel: the offline storyteller and HTTP protocols.
