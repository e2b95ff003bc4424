//! The discuss phase: one recorded question at a time about anything unclear.

use stepwell::Event;
use stepwell::model::Question;

use super::agents::AgentPart;
use super::answers::{QuestionReply, Unclear};
use super::guide::{Guide, Question as Asked, part};
use super::prompts::{Background, next_question};
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::YesPhase;

/// The default number of questions in a discussion.
const MAX_QUESTIONS: u32 = 5;

/// The largest number of questions that a spec may set.
const MOST_QUESTIONS: u32 = 20;

/// The progress of the discussion.
#[derive(Debug, Default)]
pub(super) struct Discussion {
    /// How often the agent was asked for a question.
    asked: u32,
    /// How many discussions there were.
    rounds: u32,
}

impl Discussion {
    /// Discusses the goal; again if a plan was rejected.
    pub(super) async fn hold(
        &mut self,
        guide: &Guide<'_, '_>,
        background: &mut Background,
        rejected: Option<&str>,
    ) -> Result<(), Halt> {
        self.rounds += 1;
        if guide.config.says_yes(YesPhase::Discuss) {
            return Ok(());
        }
        let most = guide.config.max_questions.unwrap_or(MAX_QUESTIONS).min(MOST_QUESTIONS);
        let mut before: Option<Option<String>> = None;
        for _ in 0..most {
            self.asked += 1;
            let Some(unclear) = self.next(guide, background, rejected, before.as_ref()).await?
            else {
                return Ok(());
            };
            let reply = self.ask(guide, &unclear)?;
            background.questions.push(self.replied(&unclear, &reply));
            match reply {
                QuestionReply::SkipAll => return Ok(()),
                QuestionReply::Skip => before = Some(None),
                QuestionReply::Answer(answer) => before = Some(Some(answer)),
            }
        }
        Ok(())
    }

    /// The agent's next question, if there is one.
    async fn next(
        &self,
        guide: &Guide<'_, '_>,
        background: &Background,
        rejected: Option<&str>,
        before: Option<&Option<String>>,
    ) -> Result<Option<Unclear>, Halt> {
        let output = guide
            .ask_agent(&AgentPart {
                key: &part("discuss", self.asked),
                agent: &guide.config.discuss,
                lane: lane("discuss"),
                prompt: &|| {
                    Ok(match before {
                        None => background.discuss(rejected),
                        Some(answer) => next_question(answer.as_deref()),
                    })
                },
                read: &|text| Ok(Unclear::output(Unclear::parse(text)?.as_ref())),
            })
            .await?;
        Ok(Unclear::of_output(&output))
    }

    /// Asks the user. Question and answer are part of the session's state.
    fn ask(&self, guide: &Guide<'_, '_>, unclear: &Unclear) -> Result<QuestionReply, Halt> {
        let closing = |text: &str| {
            let replied = self.replied(unclear, &unclear.reply(text));
            vec![Event::from(guide.plain_question(replied))]
        };
        let first = unclear.suggestions.first().map_or("skip", String::as_str);
        let opening = vec![guide.plain_question(self.question(unclear)).into()];
        let question = Asked {
            prompt: unclear.prompt(),
            default: Some(first.to_owned()),
            opening,
            closing: &closing,
            agreed: None,
        };
        let answered = guide.ask_person(&part("question", self.asked), question)?;
        Ok(unclear.reply(&answered.text))
    }

    fn question(&self, unclear: &Unclear) -> Question {
        Question::new(self.asked.to_string(), &unclear.question)
    }

    /// The question with the user's answer.
    fn replied(&self, unclear: &Unclear, reply: &QuestionReply) -> Question {
        match reply {
            QuestionReply::Answer(answer) => self.question(unclear).with_answer(answer),
            QuestionReply::Skip | QuestionReply::SkipAll => self.question(unclear).skip(),
        }
    }
}

impl Guide<'_, '_> {
    /// A question without secrets.
    fn plain_question(&self, question: Question) -> Question {
        let redact = |text: &str| self.flow.agents.redactor().redact(text).into_owned();
        let answer = question.answer.as_deref().map(redact);
        Question { text: redact(&question.text), answer, ..question }
    }
}
