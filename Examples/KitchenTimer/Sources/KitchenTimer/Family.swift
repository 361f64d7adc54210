import HTTPTypes
import HeraldModel
import HeraldProvider

/// The family on its server: who has which device, and the timers. It is the app's provider.
actor Family {
    /// A device of the family.
    struct Member: Codable, Hashable, Sendable {
        /// The device token in hexadecimal digits; nil while it has none.
        var token: String?
        /// The user's languages, in order of preference.
        var languages: [String]
    }

    /// The parts that a restart keeps.
    struct Record: Codable, Sendable {
        var members: [String: Member] = [:]
        var book = TimerBook()
    }

    private let topic: Topic
    private let client: ProviderClient
    private let file: JSONFile<Record>
    private var record: Record
    /// The devices whose timers changed, and which do not hear of it by their own request.
    private let news: AsyncStream<String>
    private let tell: AsyncStream<String>.Continuation

    /// Reads the family's file.
    /// - Throws: ``KitchenRefusal``.
    init(_ topic: Topic, file path: String, client: ProviderClient) throws {
        self.topic = topic
        self.client = client
        file = JSONFile(path)
        record = try file.read() ?? Record()
        (news, tell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(KitchenLimits.devices))
    }

    /// Takes over a device's report.
    /// - Returns: The family's timers.
    /// - Throws: ``KitchenRefusal``.
    func synchronize(_ message: FamilyMessage, now: Double) throws -> FamilyAnswer {
        let before = record
        do {
            try check(message)
            let token = message.token.flatMap { PushToken($0)?.hex }
            let member = Member(token: token, languages: message.languages)
            if record.members[message.device]?.languages != member.languages {
                say("\(message.device) reads \(member.languages.joined(separator: ", "))")
            }
            record.members[message.device] = member
            let isNew = record.book.merge(message.timers, now: now)
            try file.write(record)
            if isNew {
                for device in record.members.keys.sorted() where device != message.device { tell.yield(device) }
            }
            return FamilyAnswer(timers: record.book.timers)
        } catch {
            record = before
            throw error
        }
    }

    private func check(_ message: FamilyMessage) throws {
        guard (1...64).contains(message.device.utf8.count) else {
            throw KitchenRefusal("\"device\" must be the device's identifier")
        }
        guard message.token.map({ PushToken($0) != nil }) ?? true else {
            throw KitchenRefusal("\"token\" must be a device token in hexadecimal digits")
        }
        guard message.languages.count <= 20, message.languages.allSatisfy({ $0.utf8.count <= 35 }) else {
            throw KitchenRefusal("\"languages\" must be at most 20 codes, like de or pt-BR")
        }
        for timer in message.timers { try timer.check() }
        guard record.members[message.device] != nil || record.members.count < KitchenLimits.devices else {
            throw KitchenRefusal("there are already \(KitchenLimits.devices) devices in this family", status: .conflict)
        }
    }

    // MARK: - Notifications

    /// Wakes devices whose timers changed with a silent notification each, until the task is cancelled.
    nonisolated func run() async {
        for await device in news { await wake(device) }
    }

    private func wake(_ device: String) async {
        guard let token = record.members[device]?.token.flatMap({ PushToken($0) }) else { return }
        do {
            var request = try PushRequest(token: token, topic: topic, payload: .background, pushType: .background)
            // Of several, the device needs the newest.
            request.collapseID = "timers"
            _ = try await send(request, to: device)
        } catch {
            say("\(device) was not woken: \(error)")
        }
    }

    /// Tells everybody but the cook that dinner is ready, each in the user's language, and all at once: the cook waits.
    /// - Returns: The answer to the cook's device.
    func dinner(_ call: DinnerCall) async -> DinnerAnswer {
        let others = record.members.filter { $0.key != call.device }
        let told = await withTaskGroup(of: Bool.self) { group in
            for (device, member) in others {
                group.addTask { await self.invite(member, device) }
            }
            var told = 0
            for await isTold in group where isTold { told += 1 }
            return told
        }
        return DinnerAnswer(told: told)
    }

    /// Tells a member that dinner is ready.
    /// - Returns: Whether the push service took the notification.
    private func invite(_ member: Member, _ device: String) async -> Bool {
        guard let token = member.token.flatMap({ PushToken($0) }) else { return false }
        let words = FamilyWords.words(in: member.languages)
        var payload = Payload(alert: Alert(title: .literal(words.title), body: .literal(words.body)))
        payload.sound = .default
        payload.threadID = "dinner"
        payload.interruptionLevel = .timeSensitive
        do {
            var request = try PushRequest(token: token, topic: topic, payload: payload)
            request.collapseID = "dinner"
            return try await send(request, to: device)
        } catch {
            say("\(device) was not told: \(error)")
            return false
        }
    }

    /// Sends a notification; forgets the token if the app is gone from the device.
    private func send(_ request: PushRequest, to device: String) async throws -> Bool {
        switch try await client.send(request) {
        case .accepted: return true
        case .refused(let refusal):
            say("the push service refuses a notification for \(device): \(refusal.reason)")
            // The device may have reported another token meanwhile.
            if refusal.reason.known == .unregistered, record.members[device]?.token == request.token.hex {
                record.members[device] = nil
                try file.write(record)
            }
            return false
        }
    }
}
