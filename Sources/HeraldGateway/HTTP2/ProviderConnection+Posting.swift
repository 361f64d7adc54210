import HeraldMailbox
import HeraldModel

// Notifications on their way to the post office, and the answer to those that it took.
extension ProviderConnection {
    /// Takes a notification to the post office.
    func post(
        _ notification: Notification,
        _ generation: UInt32,
        _ slot: RequestSlot,
        _ environment: PushEnvironment
    ) {
        post(notification, slot, environment) { service.letterBox.post($0, generation: generation) }
    }

    func post(
        _ notification: Notification,
        _ slot: RequestSlot,
        _ environment: PushEnvironment,
        _ post: (Letter) -> PostDecision
    ) {
        guard let desk = membership?.desk else { return }
        slot.replyID = givenID(slot) ?? IdentifierText(notification.id, upperCase: true)
        if environment == .sandbox || intake.rules.alwaysSendsUniqueID {
            slot.replyUniqueID = IdentifierText(notification.uniqueID, upperCase: false)
        }
        session.keepInHand(slot)
        let letter = Letter(notification, receipt: Receipt(desk: desk, number: slot.number))
        if slot.explains { slot.letter = letter }
        switch post(letter) {
        case .accepted: accept(slot)
        case .pending: break
        case .refused(let rejection, let since):
            refuse(slot, Refusal(rejection, PostRefusal.words(rejection), since: since))
        }
    }

    func accept(_ slot: RequestSlot) {
        let accepted = slot.acceptance ?? .accepted
        service.metrics.count(accepted.status)
        guard slot.explains, let letter = slot.letter else { return give(accepted, to: slot) }
        let asksForPast = slot.fields.has(.apnsExpiration) && !slot.fields.value(of: .apnsExpiration, is: "0")
        var reply = accepted
        reply.explanation = Array(Explanation.words(for: letter, asksForPast: asksForPast).utf8)
        give(reply, to: slot)
    }
}
