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
            promise(Reply(status: .ok, body: body), "it is so at this moment", slot)
            accept(slot)
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
            promise(.accepted, "no app could read it: it is on record, and is sent to nobody", slot)
            perform { $0.discard(post, as: .discardedUndeliverable, receipt: receipt) }
        }
    }

    /// The answer that a request gets once it is accepted, with words if the provider asked for them.
    private func promise(_ reply: Reply, _ words: StaticString, _ slot: RequestSlot) {
        var reply = reply
        if slot.explains { reply.explanation = words.withUTF8Buffer { Array($0) } }
        slot.acceptance = reply
    }

    /// Answers as was decided, or keeps the request until its receipt is settled, which is on another turn of the loop.
    private func hold(_ slot: RequestSlot, _ decision: PostDecision) {
        session.keepInHand(slot)
        switch decision {
        case .accepted:
            promise(.accepted, "it was not to be stored, and is on its way to the devices that are subscribed", slot)
            accept(slot)
        case .pending:
            if slot.acceptance?.explanation == nil { promise(slot.acceptance ?? .accepted, "it is stored", slot) }
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
