//! What is remembered: the LMDB environment, key codecs, commits.
