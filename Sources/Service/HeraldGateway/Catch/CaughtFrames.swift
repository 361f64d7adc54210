import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire

/// Notifications that are caught for people who test.
extension BinaryConnection {
    /// Keeps what is known of a notification before it is looked at, if it is caught.
    func beginCatch(_ request: BinaryNotification, _ number: UInt64, _ now: WallTime) {
        guard let authorization else { return }
        let topic = authorization.app?.topic
        guard service.gateway.catcher.catches(topic) else { return }
        caught[number] = CaughtDraft(
            CaughtMessage(
                interface: .binary,
                time: now,
                environment: authorization.app?.environment ?? service.binary.environment,
                topic: topic,
                sender: .certificate(authorization.certificate.serial),
                headers: request.caught,
                payload: request.payload,
                tag: HeraldMember.tag(nil, request.payload)
            )
        )
    }

    /// Keeps a notification whose outcome is known.
    func endCatch(_ number: UInt64, _ outcome: CompletionOutcome) {
        let refusalReason: RefusalReason?
        switch outcome {
        case .decideAgain: return
        case .accepted: refusalReason = nil
        case .refused(let reason, _): refusalReason = reason
        case .unknown: refusalReason = .serviceUnavailable
        }
        guard var message = caught.removeValue(forKey: number)?.message else { return }
        message.status = Int(refusalReason?.binaryStatus.rawValue ?? 0)
        message.reason = refusalReason?.reason
        message.explanation = message.explanation ?? refusalReason?.explanation
        if message.status != 0 { message.answered = service.clock.now() }
        service.gateway.catcher.keep(message)
    }
}

extension BinaryNotification {
    /// The fields of the frame, by the names of the HTTP/2 API where there is one.
    fileprivate var caught: [String: String] {
        var all = ["command": "\(form.rawValue)"]
        if let identifier { all["identifier"] = "\(identifier)" }
        if let expiration { all["apns-expiration"] = "\(expiration)" }
        if let priority { all["apns-priority"] = "\(priority.rawValue)" }
        return all
    }
}
