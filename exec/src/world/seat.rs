//! Seats: who plays, and which characters each controls. They belong to no package; the host alone writes them. SEA-1

use serde::{Deserialize, Serialize};

use crate::limits::MAX_SEAT_CHARACTERS;

/// The seat every session starts with.
pub const FIRST_SEAT: &str = "player";

/// One seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// Id.
    pub id: String,
    /// The seat of whoever's turn it is.
    pub primary: bool,
    /// The character this seat acts as.
    pub current_character_id: Option<String>,
    /// Every character bound to it. SEA-4
    pub character_ids: Vec<String>,
}

/// The seat of whoever's turn it is: the marked one, else the first.
pub fn primary(seats: &[Seat]) -> Option<&Seat> {
    seats.iter().find(|seat| seat.primary).or(seats.first())
}

/// The seats of a new session.
pub fn first(players: &[String]) -> Vec<Seat> {
    let mut seats =
        vec![Seat { id: FIRST_SEAT.into(), primary: true, current_character_id: None, character_ids: Vec::new() }];
    reconcile(&mut seats, players);
    seats
}

/// Brings seats in line with the player characters there are: those no seat has go to the primary one, characters that
/// are no player's any more leave, an empty chair takes the first bound character. A chosen one stays.
pub fn reconcile(seats: &mut [Seat], players: &[String]) {
    for seat in seats.iter_mut() {
        seat.character_ids.retain(|id| players.contains(id));
    }
    let unbound: Vec<&String> =
        players.iter().filter(|id| !seats.iter().any(|seat| seat.character_ids.contains(id))).collect();
    let at = seats.iter().position(|seat| seat.primary).unwrap_or(0);
    if let Some(primary) = seats.get_mut(at) {
        let room = MAX_SEAT_CHARACTERS.saturating_sub(primary.character_ids.len());
        primary.character_ids.extend(unbound.into_iter().take(room).cloned());
    }
    for seat in seats {
        let bound = seat.current_character_id.as_ref().is_some_and(|current| seat.character_ids.contains(current));
        if !bound {
            seat.current_character_id = seat.character_ids.first().cloned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SEA-4, SEA-5
    #[test]
    fn the_primary_seat_takes_every_player_and_keeps_its_choice() {
        let ids = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let mut seats = first(&ids(&["ana", "bo"]));
        assert_eq!(seats[0].current_character_id.as_deref(), Some("ana"));
        seats[0].current_character_id = Some("bo".into());
        reconcile(&mut seats, &ids(&["ana", "bo", "cy"]));
        assert_eq!((seats[0].character_ids.len(), seats[0].current_character_id.as_deref()), (3, Some("bo")));
        reconcile(&mut seats, &ids(&["cy"]));
        assert_eq!((seats[0].character_ids.len(), seats[0].current_character_id.as_deref()), (1, Some("cy")));
        reconcile(&mut seats, &[]);
        assert_eq!(seats[0].current_character_id, None);
    }
}
