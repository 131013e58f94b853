//! The answer to a question about a start.

/// The demand of a start, the server's error against it, or the reason why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAnswer<T> {
    /// The start asks for this.
    Starts(T),
    /// The server would not start; the text of its error.
    Refuses(String),
    /// The program was not asked, or its end says nothing about a start; the reason.
    Unknown(String),
}

/// The answers for the two ways to start: only `pg_ctl restart` repeats the options of the postmaster's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoStarts<T> {
    /// The start with the options of the command line.
    pub with_options: T,
    /// The start without these options; `None` if they make no difference.
    pub without: Option<StartWithoutOptions<T>>,
}

/// A start without the options of the command line that make a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartWithoutOptions<T> {
    /// The demand of that start.
    pub asks_for: T,
    /// The reason why there are two starts, naming the options; a sentence for notes.
    pub note: String,
}

impl<T> StartAnswer<T> {
    /// The answer with `change` made to what the start asks for.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> StartAnswer<U> {
        match self {
            Self::Starts(demand) => StartAnswer::Starts(change(demand)),
            Self::Refuses(error) => StartAnswer::Refuses(error),
            Self::Unknown(why) => StartAnswer::Unknown(why),
        }
    }
}

impl<T: PartialEq> StartAnswer<T> {
    /// The answer for both starts. `without`: the options that the files do not set as the command line does, as
    /// `shared_buffers=64MB`, and the answer without them; `None` if there are no such options.
    pub fn of_both(self, without: Option<(&[String], impl FnOnce() -> Self)>) -> StartAnswer<TwoStarts<T>> {
        let with_options = match self {
            Self::Starts(demand) => demand,
            Self::Refuses(error) => return StartAnswer::Refuses(error),
            Self::Unknown(why) => return StartAnswer::Unknown(why),
        };
        let Some((options, without_options)) = without else {
            return StartAnswer::Starts(TwoStarts { with_options, without: None });
        };
        let note =
            format!("the command line of the server sets {}, which only pg_ctl restart repeats", options.join(", "));
        match without_options() {
            Self::Starts(asks_for) => {
                let without = (asks_for != with_options).then_some(StartWithoutOptions { asks_for, note });
                StartAnswer::Starts(TwoStarts { with_options, without })
            }
            Self::Refuses(error) => StartAnswer::Unknown(format!("{note}; without it the server says: {error}")),
            Self::Unknown(why) => StartAnswer::Unknown(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StartAnswer::{Refuses, Starts, Unknown};

    #[test]
    fn only_a_demand_changes() {
        let twice = |answer: StartAnswer<u32>| answer.map(|demand| demand * 2);
        assert_eq!(twice(Starts(2)), Starts(4));
        assert_eq!(twice(Refuses("no".to_owned())), Refuses("no".to_owned()));
        assert_eq!(twice(Unknown("why".to_owned())), Unknown("why".to_owned()));
    }

    /// The answer with options, the answer without them, and what both come to.
    #[test]
    fn both_starts() {
        let options = ["shared_buffers=64MB".to_owned(), "max_connections=9".to_owned()];
        let both = |with: StartAnswer<u32>, without: StartAnswer<u32>| with.of_both(Some((&options[..], || without)));
        let note = "the command line of the server sets shared_buffers=64MB, max_connections=9, which only pg_ctl restart \
                    repeats";
        let alone = Starts(TwoStarts { with_options: 2, without: None });
        assert_eq!(Starts(2).of_both(None::<(&[String], fn() -> StartAnswer<u32>)>), alone);
        assert_eq!(both(Starts(2), Starts(2)), alone);
        let without = Some(StartWithoutOptions { asks_for: 3, note: note.to_owned() });
        assert_eq!(both(Starts(2), Starts(3)), Starts(TwoStarts { with_options: 2, without }));
        assert_eq!(
            both(Starts(2), Refuses("no".to_owned())),
            Unknown(format!("{note}; without it the server says: no"))
        );
        assert_eq!(both(Starts(2), Unknown("why".to_owned())), Unknown("why".to_owned()));
        assert_eq!(both(Refuses("no".to_owned()), Starts(2)), Refuses("no".to_owned()));
        assert_eq!(both(Unknown("why".to_owned()), Starts(2)), Unknown("why".to_owned()));
    }
}
