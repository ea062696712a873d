//! What executions did and consumed, found by turn id. The newest are kept, within limits; nobody but a reader
//! asks for them, so the journal leaves them out.

use covel_graph::{Json, SessionId, TurnId};

use crate::{
    codec::{self, RecordReader, RecordWriter},
    error::StoreError,
    keys::Key,
    limits,
    read::Reader,
    ring::{Ring, session_key},
    tables::Table,
    tx::Tx,
};

const TRACES: Ring = Ring { table: Table::Traces, max_rows: limits::MAX_TRACES, max_bytes: limits::MAX_TRACES_BYTES };

/// One execution.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Its turn id.
    pub turn: TurnId,
    /// What it did, as its owner wrote it.
    pub trace: Json,
    /// What it consumed, in its owner's format; empty when nothing was kept.
    pub consumed: Vec<u8>,
}

fn id_key(session: &SessionId, turn: &TurnId) -> Key {
    session_key(session).text(turn.as_str())
}

fn head(bytes: &[u8]) -> Result<(&str, usize, RecordReader<'_>), StoreError> {
    let mut record = RecordReader::new(Table::Traces, bytes)?;
    let turn = record.text()?;
    let length = record.varint()?;
    Ok((turn, length, record))
}

impl Reader<'_> {
    /// The trace of an execution.
    ///
    /// # Errors
    /// `store-corrupt`, `store-io`.
    pub fn get_trace(&self, session: &SessionId, turn: &TurnId) -> Result<Option<TraceRow>, StoreError> {
        let Some(seq) = self.get_raw(Table::TraceIds, id_key(session, turn).as_bytes())? else {
            return Ok(None);
        };
        let seq = codec::number(Table::TraceIds, seq)?;
        let Some(bytes) = TRACES.row(self, &session_key(session), seq)? else {
            return Ok(None);
        };
        let (turn, length, mut record) = head(bytes)?;
        let trace = record.bytes(length)?;
        let trace = std::str::from_utf8(trace).map_err(|_| codec::corrupt(Table::Traces, "JSON is not UTF-8"))?;
        Ok(Some(TraceRow { turn: turn.into(), trace: Json::trusted(trace), consumed: record.rest().to_vec() }))
    }
}

impl Tx<'_> {
    /// Keeps the trace of an execution. One that is there already stays as it is: a trace is written once.
    ///
    /// # Errors
    /// `store-value-too-large`, `store-corrupt`, `store-io`.
    pub fn put_trace(
        &mut self,
        session: &SessionId,
        turn: &TurnId,
        trace: &Json,
        consumed: &[u8],
    ) -> Result<(), StoreError> {
        let id = id_key(session, turn);
        if self.read().get_raw(Table::TraceIds, id.as_bytes())?.is_some() {
            return Ok(());
        }
        let text = trace.text().as_bytes();
        let found = text.len() + consumed.len();
        if found > limits::MAX_RECORD_BYTES {
            return Err(StoreError::ValueTooLarge {
                table: Table::Traces.name(),
                found,
                limit: limits::MAX_RECORD_BYTES,
            });
        }
        let row = RecordWriter::new(found + 64).text(turn.as_str()).counted(text).tail(consumed);
        let prefix = session_key(session);
        let seq = TRACES.append(self, &prefix, row, |tx, row| {
            let key = prefix.clone().text(head(row)?.0);
            tx.overlay.set(Table::TraceIds, key.into_bytes(), None);
            Ok(())
        })?;
        self.put_raw(Table::TraceIds, id, seq.to_be_bytes().to_vec())
    }
}
