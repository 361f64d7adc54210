import HeraldModel
import HeraldProvider
import Synchronization

/// What is known of a journal.
struct JournalState: Sendable {
    /// When it was asked last; nil: never.
    var asked: WallTime?
    /// Why it cannot be asked; nil while it answers.
    var failure: String?
}

extension Route {
    /// What changed with an answer.
    enum Change: Hashable {
        case broken(String)
        case mended
    }

    /// What a result says of the credential.
    /// - Returns: Until when rows of the topic wait, with the service's word, if it is not accepted; and what changed.
    func noteCredential(
        _ result: SendResult,
        _ topic: Topic,
        at now: WallTime
    ) -> (wait: (until: WallTime, reason: String)?, change: Change?) {
        credential.withLock { credential in
            let word: String
            switch result {
            case .answered(.refused(let refusal))
            where AnswerRules.isAboutCredential(refusal, isNamed: !app.topics.isEmpty):
                word = AnswerRules.word(for: refusal)
            case .answered(.refused(let refusal)) where AnswerRules.isWorthAnotherTry(refusal):
                credential.unanswered(topic, at: now)
                return (nil, nil)
            case .answered: return (nil, credential.accepted(topic) ? .mended : nil)
            case .notAccepted(let reason): word = reason
            case .notSent, .uncertain, .impossible, .refused:
                credential.unanswered(topic, at: now)
                return (nil, nil)
            }
            let (until, isNew) = credential.refused(topic, word, at: now, share: .random(in: 0...1))
            return ((until, word), isNew ? .broken(word) : nil)
        }
    }

    /// Until when a row of a topic waits for the credential, and why; nil if it may be sent now.
    func waitForCredential(_ topic: Topic, at now: WallTime) -> (until: WallTime, reason: String)? {
        credential.withLock { credential in
            guard let until = credential.admit(topic, at: now) else { return nil }
            return (until, credential.reason(topic) ?? "BadCredential")
        }
    }

    /// What is wrong with the credential, in a line for each topic, but for a few of many.
    var credentialTroubles: [String] {
        let troubles = credential.withLock { $0.troubles }
        let lines = troubles.prefix(10).map { topic, trouble in
            "\(name) does not accept the credential for \(topic?.name ?? "further topics") (\(trouble.reason)) since "
                + "\(trouble.since.rfc3339): its rows wait. Mend the credential, and reload with SIGHUP if its file is another"
        }
        return lines + (troubles.count > 10 ? ["\(name): \(troubles.count - 10) more topics like that"] : [])
    }

    /// Who it is, in words.
    var name: String { "\(app.service) (\(app.name), \(app.environment.rawValue))" }

    /// Takes note of what a journal answered.
    func noteJournal(_ standing: JournalStanding, at now: WallTime) -> Change? {
        journal.withLock { journal in
            let before = journal.failure
            journal.asked = now
            guard case .unavailable(let why) = standing else {
                journal.failure = nil
                return before == nil ? nil : .mended
            }
            journal.failure = why
            return before == nil ? .broken(why) : nil
        }
    }

    /// Whether its journal is to be tried: it never was, or it did not answer, and that was a while ago.
    func isJournalUntried(at now: WallTime) -> Bool {
        journal.withLock { journal in
            guard let asked = journal.asked else { return true }
            return journal.failure != nil && now >= asked + .seconds(30)
        }
    }

    /// Why the journal cannot be asked; nil if it can.
    var journalTrouble: String? {
        journal.withLock { $0.failure }.map {
            "the journal of \(name) at \(app.journal?.console ?? "its console") cannot be asked (\($0)): rows that may have "
                + "been sent wait for it"
        }
    }
}
