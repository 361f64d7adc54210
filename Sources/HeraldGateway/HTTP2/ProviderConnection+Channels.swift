import HeraldMailbox
import HeraldModel

// Requests about channels and broadcasts, in the order in which they are decided: see ``ChannelIntake``.
extension ProviderConnection {
    func answerAboutChannels(_ slot: RequestSlot, _ environment: PushEnvironment, _ now: WallTime) {
        guard let desk = membership?.desk else { return }
        let given = slot.fields.withValue(of: .apnsRequestID) { NotificationID(utf8: $0) } ?? nil
        let id = given ?? ids.identifier()
        slot.replyID = givenID(slot) ?? IdentifierText(id, upperCase: true)
        let receipt = Receipt(desk: desk, number: slot.number)
        let office = service.channels
        func perform(_ order: (ChannelOffice) -> PostDecision) {
            // Whoever has no office has refused the request already.
            hold(slot, office.map(order) ?? .refused(.featureNotEnabled, since: nil))
        }
        switch channelIntake.decide(
            slot,
            RequestRoute(slot.fields),
            id: id,
            &standing,
            environment: environment,
            ids: &ids,
            now: now
        ) {
        case .refused(let refusal):
            refuse(slot, refusal)
        case .answer(let body):
            slot.acceptance = Reply(status: .ok, body: body)
            accept(slot, "so it is")
        case .create(let app, let storage):
            let channel = ChannelID.random()
            slot.acceptance = Reply(status: .created, channelID: Array(channel.base64.utf8))
            perform { $0.create(channel, for: app, storage: storage, receipt: receipt) }
        case .delete(let channel, let app):
            slot.acceptance = Reply(status: .noContent)
            perform { $0.delete(channel, of: app, receipt: receipt) }
        case .publish(let post):
            slot.replyUniqueID = IdentifierText(post.uniqueID, upperCase: false)
            perform { $0.publish(post, receipt: receipt) }
        case .unreadable(let post):
            slot.replyUniqueID = IdentifierText(post.uniqueID, upperCase: false)
            perform { $0.discard(post, as: .discardedUndeliverable) }
        }
    }

    /// Answers as was decided, or keeps the request until its receipt is settled, which is on another turn of the loop.
    private func hold(_ slot: RequestSlot, _ decision: PostDecision) {
        session.keepInHand(slot)
        switch decision {
        case .accepted: accept(slot, "it was not to be stored, and is on its way to the devices that are subscribed")
        case .pending: break
        case .refused(let rejection, _): refuse(slot, Refusal(rejection, Self.wordsAboutChannels(rejection)))
        }
    }

    /// What the channel office's refusals mean to a provider.
    private static func wordsAboutChannels(_ rejection: Rejection) -> String {
        switch rejection {
        case .cannotCreateChannelConfig: "the app has as many channels as it may have; delete some"
        case .channelNotRegistered: "the app has no such channel"
        case .tooManyRequests: "more broadcasts than devices can be told of; send fewer, or later"
        case .serviceUnavailable: "nothing can be stored at present; send it again later"
        default: "the service refuses it"
        }
    }
}
