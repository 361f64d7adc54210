import HeraldModel

/// The fate of a push.
package enum Verdict: String, Codable, CaseIterable, Sendable {
    /// Accepted once, and the sender does not deny it.
    case once
    /// Not accepted, and the sender says so.
    case lostAndTold = "lost, told"
    /// Not accepted and answered, by a sender that gives no word of its own.
    case lost
    /// Not accepted, and the sender says nothing.
    case lostInSilence = "lost in silence"
    /// Called accepted, and never accepted, or not yet asked for.
    case lied
    /// Accepted and answered, and the sender says that it failed, or that it cannot know.
    case falseAlarm = "false alarm"
    /// Accepted twice, though the first answer could not be known.
    case doubledInDoubt = "doubled, in doubt"
    /// Accepted twice, though the answer was there.
    case doubled = "doubled without need"
    /// Accepted after its expiration, or after the sender had given it up.
    case late
    /// Accepted, and the sender says nothing.
    case unanswered = "no word"
}

extension Evidence {
    /// The fate of a push.
    func verdict(_ record: PushRecord, _ cut: Cut?) -> Verdict {
        guard let first = record.accepted.first else {
            if let word = record.word { return word.outcome == .accepted ? .lied : .lostAndTold }
            if hasWords { return .lostInSilence }
            if hasFailed { return .lostAndTold }
            return record.requests.contains { $0.status != nil } ? .lost : .lostInSilence
        }
        // Times of Herald and of the sender can be compared then.
        let word = movesClock ? nil : record.word
        if let word, word.outcome == .accepted, word.time < first.time { return .lied }
        if record.accepted.count > 1 { return isWithoutNeed(record, cut) ? .doubled : .doubledInDoubt }
        if let word, [.failed, .refused].contains(word.outcome), first.time > word.time { return .late }
        let push = record.push
        if let expiration = push.expiration, expiration > 0, !push.isExpired, first.time.seconds > expiration {
            return .late
        }
        guard let said = record.word else { return hasWords ? .unanswered : .once }
        let isAlarm = said.outcome != .accepted && knows(first, by: word?.time, cut)
        return isAlarm ? .falseAlarm : .once
    }

    /// Whether the sender repeated a push of which it knew that it was accepted.
    private func isWithoutNeed(_ record: PushRecord, _ cut: Cut?) -> Bool {
        let accepted = record.accepted
        return accepted.indices.dropFirst().contains { index in
            // A sender that repeats while the answer is delayed cannot know it yet, but it waits for it.
            let time = accepted[index].time
            let isAnswered = accepted[..<index].contains {
                knows($0, by: time - $0.time < .seconds(1) ? nil : time, cut)
            }
            let isSaid =
                record.word.map { !movesClock && $0.outcome == .accepted && $0.time < time } ?? false
            return isAnswered || isSaid
        }
    }

    /// Whether a push that was not accepted may have been, for all that the sender knows.
    func isInDoubt(_ record: PushRecord, _ cut: Cut?) -> Bool {
        guard let word = record.word, word.outcome == .unknown else { return false }
        // A request that is written to a connection that is cut may be lost before Herald sees it.
        guard !record.requests.isEmpty else { return cut != nil }
        return record.requests.contains { !knows($0, by: movesClock ? nil : word.time, cut) }
    }

    /// Whether the answer to a request had reached the sender at a time; nil for the end.
    private func knows(_ request: ExamRequest, by time: WallTime?, _ cut: Cut?) -> Bool {
        guard let answered = request.answered, time.map({ answered <= $0 }) ?? true else { return false }
        // An answer that is written shortly before the end of its connection may be lost on its way.
        let safe = answered + .seconds(1)
        switch cut {
        case nil: return true
        case .service: return restart.map { safe < $0.lowerBound || request.time > $0.upperBound } ?? true
        case .connection(let number):
            let victim = pushes.indices.contains(number) ? pushes[number].requests.first : nil
            return victim.map { $0.connection != request.connection || safe < $0.time } ?? true
        }
    }
}

/// The connections that end in a scenario without notice.
enum Cut: Sendable {
    /// The one with the first request for a push.
    case connection(ofPush: Int)
    /// All of a service that is started again.
    case service
}

extension PushRecord {
    var accepted: [ExamRequest] { requests.filter(\.isAccepted) }

    /// Whether each repetition has the identifier of the first request.
    var keepsIdentifier: Bool { Set(requests.map(\.apnsID)).count == 1 && requests.first?.apnsID != nil }
}
