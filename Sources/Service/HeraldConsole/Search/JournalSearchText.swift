package import HeraldMailbox
package import HeraldModel

/// A search in the journal, as it is written: `topic:com.example.app state:stored -device:phone after:-2h`.
///
/// Terms with different keys must all hold, and of terms with the same key one. Words without a key are an identifier, a
/// device token, a topic or a device, by their form.
package struct JournalSearchText: Hashable, Sendable {
    package typealias Choice = JournalFilter.Choice

    package private(set) var ids = Choice<NotificationID>()
    package private(set) var topics = Choice<Topic>()
    package private(set) var environment: PushEnvironment?
    /// Identifiers or names of devices.
    package private(set) var devices = Choice<String>()
    package private(set) var tokens = Choice<DeviceToken>()
    package private(set) var states = Choice<JournalState>()
    /// Names of credentials.
    package private(set) var providers = Choice<String>()
    package private(set) var reasons = Choice<JournalFilter.Reason>()
    package private(set) var types = Choice<PushType>()
    package private(set) var priorities = Choice<Priority>()
    package private(set) var after: WallTime?
    package private(set) var before: WallTime?

    /// Reads a search, with times like `-2h` before `now`; an empty one finds everything.
    /// - Throws: ``AdminError``, which says what is wrong and what is allowed.
    package init(_ text: String, now: WallTime) throws(AdminError) {
        for term in try SearchTerms(text).terms { try add(term, now: now) }
    }

    private enum Key: String, CaseIterable {
        case topic, state, device, provider, reason, type, priority, id, environment, after, before
    }

    private mutating func add(_ term: SearchTerms.Term, now: WallTime) throws(AdminError) {
        let (value, isNegated) = (term.value, term.isNegated)
        guard let name = term.key else { return addWord(value, isNegated) }
        guard let key = Key(rawValue: name) else {
            let known = Key.allCases.map { "\($0.rawValue):" }.joined(separator: " ")
            throw AdminError(.badRequest, "there is no key '\(name):'; the keys are \(known)")
        }
        switch key {
        case .topic:
            let topic = try Self.wanted(Topic(value), value, "a topic like com.example.app")
            topics.add([topic], isUnwanted: isNegated)
        case .state: states.add(try Self.states(value), isUnwanted: isNegated)
        case .device: addDevice(value, isNegated)
        case .provider: providers.add([value], isUnwanted: isNegated)
        case .reason: reasons.add(try Self.reasons(value), isUnwanted: isNegated)
        case .type:
            let names = PushType.allCases.map(\.rawValue).joined(separator: ", ")
            let type = try Self.wanted(PushType(rawValue: value.lowercased()), value, "a push type: \(names)")
            types.add([type], isUnwanted: isNegated)
        case .priority:
            let priority = UInt8(value).flatMap(Priority.init(rawValue:))
            priorities.add([try Self.wanted(priority, value, "a priority: 10, 5 or 1")], isUnwanted: isNegated)
        case .id:
            let id = try Self.wanted(NotificationID(value), value, "an apns-id or apns-unique-id, which is a UUID")
            ids.add([id], isUnwanted: isNegated)
        case .environment: try setEnvironment(value, isNegated)
        case .after, .before: try setTime(key, value, isNegated, now: now)
        }
    }

    private static func wanted<Value>(_ read: Value?, _ text: String, _ words: String) throws(AdminError) -> Value {
        guard let read else { throw AdminError(.badRequest, "'\(text)' is not \(words)") }
        return read
    }

    private mutating func addWord(_ word: String, _ isNegated: Bool) {
        if let id = NotificationID(word) {
            ids.add([id], isUnwanted: isNegated)
        } else if word.contains("."), let topic = Topic(word) {
            topics.add([topic], isUnwanted: isNegated)
        } else {
            addDevice(word, isNegated)
        }
    }

    private mutating func addDevice(_ text: String, _ isNegated: Bool) {
        if let token = DeviceToken(text) {
            tokens.add([token], isUnwanted: isNegated)
        } else {
            devices.add([text], isUnwanted: isNegated)
        }
    }

    private mutating func setEnvironment(_ value: String, _ isNegated: Bool) throws(AdminError) {
        let environment = try Self.wanted(
            PushEnvironment(rawValue: value.lowercased()),
            value,
            "an environment: production or sandbox"
        )
        let wanted = isNegated ? PushEnvironment.allCases.first { $0 != environment } : environment
        guard self.environment == nil || self.environment == wanted else {
            throw AdminError(.badRequest, "a line has one environment: leave out environment: to search both")
        }
        self.environment = wanted
    }

    private mutating func setTime(
        _ key: Key,
        _ value: String,
        _ isNegated: Bool,
        now: WallTime
    ) throws(AdminError) {
        guard !isNegated else {
            throw AdminError(.badRequest, "\(key.rawValue): cannot be negated: use after: or before: instead")
        }
        let moment = try Self.wanted(SearchMoment.read(value, now: now), value, "a time like \(SearchMoment.forms)")
        if key == .after { after = max(after ?? moment, moment) } else { before = min(before ?? moment, moment) }
    }

    // MARK: - States and reasons

    /// The text without the signs that need quotation marks.
    private static func plain(_ text: String) -> String {
        String(text.lowercased().map { "_-,()".contains($0) ? " " : $0 })
            .split(separator: " ").joined(separator: " ")
    }

    /// Whether words begin with others, as whole words.
    private static func begins(_ words: String, _ start: String) -> Bool {
        words == start || words.hasPrefix(start + " ")
    }

    /// The states whose words begin with a text: `stored`, `delivered-from-storage`.
    private static func states(_ value: String) throws(AdminError) -> [JournalState] {
        let text = plain(value)
        let found = JournalState.allCases.filter { begins(plain($0.words), text) }
        guard found.isEmpty else { return found }
        var names: [String] = []
        for state in JournalState.allCases {
            let first = String(state.words.prefix { $0.isLetter })
            if !names.contains(first) { names.append(first) }
        }
        throw AdminError(
            .badRequest,
            "'\(value)' is not a state: use one of \(names.joined(separator: ", ")), or more of its words"
        )
    }

    /// The answers of APNs of a name, or the states with these words in parentheses.
    private static func reasons(_ value: String) throws(AdminError) -> [JournalFilter.Reason] {
        let refusals = RefusalReason.allCases.filter { $0.rawValue.lowercased() == value.lowercased() }
        if !refusals.isEmpty { return refusals.map { .refusal($0) } }
        let text = plain(value)
        let states = JournalState.allCases.filter { state in
            guard let bracket = state.words.firstIndex(of: "(") else { return false }
            return begins(plain(String(state.words[bracket...])), text)
        }
        guard states.isEmpty else { return states.map { .state($0) } }
        throw AdminError(
            .badRequest,
            "'\(value)' is not a reason: use an answer like BadDeviceToken, or words like device-offline or expired"
        )
    }
}
