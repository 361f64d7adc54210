import HeraldModel

/// The rules for payloads that are JSON objects: keys, types, and what goes with what.
struct PayloadRules {
    let pushType: PushType
    let bundle: AppBundle?
    let now: Double
    var findings: [Finding] = []

    init(pushType: PushType, bundle: AppBundle?, now: Double) {
        self.pushType = pushType
        self.bundle = bundle
        self.now = now
    }

    mutating func warn(_ place: String, _ message: String) {
        findings.append(Finding(.warning, place, message))
    }

    mutating func check(_ members: [String: PayloadValue]) {
        checkTop(members)
        if let value = members["aps"] {
            if let aps = value.members { checkAps(aps) } else { warn("aps", "aps must be a dictionary") }
        } else if ![.mdm, .fileprovider, .voip, .pushtotalk, .location].contains(pushType) {
            warn("aps", "aps is missing")
        }
        for finding in PersonalData.findings(in: members) { findings.append(finding) }
    }

    private mutating func checkTop(_ members: [String: PayloadValue]) {
        for key in members.keys.sorted() where key != "aps" {
            if PayloadKey.misplaced.contains(key) {
                warn(key, "\(key) stands beside aps, where it is the app's own data: did you mean aps.\(key)?")
            } else if members["aps"] == nil, PayloadKey.likely(key, in: ["aps"]) != nil {
                warn(key, "\(key) is not a known key: did you mean aps?")
            }
        }
        if isUnread(.object(members)) {
            warn(
                "",
                "it is nested deeper than \(PayloadReader.maximumDepth) levels: many readers of JSON give up there"
            )
        }
    }

    /// Depth is bounded by the reader.
    private func isUnread(_ value: PayloadValue) -> Bool {
        switch value {
        case .unread: true
        case .array(let elements): elements.contains(where: isUnread)
        case .object(let members): members.values.contains(where: isUnread)
        default: false
        }
    }

    private mutating func checkAps(_ aps: [String: PayloadValue]) {
        for key in aps.keys.sorted() {
            if let kind = PayloadKey.aps[key] {
                checkType(of: aps[key], kind, at: "aps.\(key)")
            } else if let likely = PayloadKey.likely(key, in: PayloadKey.aps.keys) {
                warn("aps.\(key)", "aps.\(key) is not a known key: did you mean \(likely)?")
            } else if PayloadKey.alert[key] != nil {
                warn("aps.\(key)", "aps.\(key) is ignored by the system: did you mean aps.alert.\(key)?")
            } else {
                warn("aps.\(key)", "aps.\(key) is ignored by the system: put custom data beside aps")
            }
        }
        checkValues(aps)
        checkMixture(aps)
        if pushType == .liveactivity { checkActivity(aps) }
        if let alert = aps["alert"] { checkAlert(alert) }
        checkSound(aps["sound"], at: "aps.sound")
        checkSound(aps["alert"]?.members?["sound"], at: "aps.alert.sound")
        checkBundle(aps)
    }

    mutating func checkType(of value: PayloadValue?, _ kind: PayloadKey.Kind, at place: String) {
        guard let value else { return }
        if !kind.fits(value) {
            warn(place, "\(place) must be \(kind.words)")
        } else if kind == .one, !value.isOne {
            warn(place, "\(place) has no meaning unless it is 1")
        }
    }

    private mutating func checkValues(_ aps: [String: PayloadValue]) {
        if let badge = aps["badge"]?.double, badge < 0 || badge.rounded() != badge {
            warn("aps.badge", "aps.badge must be a whole number, 0 or more")
        }
        if let level = aps["interruption-level"]?.text,
            !["passive", "active", "time-sensitive", "critical"].contains(level)
        {
            warn("aps.interruption-level", "\(level) is none of passive, active, time-sensitive and critical")
        }
        if pushType != .liveactivity, let score = aps["relevance-score"]?.double, !(0...1).contains(score) {
            warn("aps.relevance-score", "aps.relevance-score must be from 0 to 1")
        }
        for key in ["stale-date", "dismissal-date", "timestamp"] {
            guard let date = aps[key]?.double else { continue }
            if date > 100_000_000_000 {
                warn("aps.\(key)", "aps.\(key) must be UNIX seconds; this looks like milliseconds")
            } else if key == "stale-date", date <= now {
                warn("aps.\(key)", "aps.\(key) is in the past: the Live Activity is outdated at once")
            } else if key == "dismissal-date", date <= now {
                warn("aps.\(key)", "aps.\(key) is in the past: the Live Activity is removed at once")
            } else if key == "timestamp", date < now - 86_400 {
                warn("aps.\(key)", "aps.\(key) is in the past: what is older than what is shown is ignored")
            }
        }
    }

    /// What must not, or must, stand together.
    private mutating func checkMixture(_ aps: [String: PayloadValue]) {
        let noticeable = ["alert", "badge", "sound"].filter { aps[$0] != nil && aps[$0] != .null }
        let wakes = aps["content-available"]?.isOne == true
        let hasAlert = aps["alert"] != nil && aps["alert"] != .null
        switch pushType {
        case .background:
            if !noticeable.isEmpty {
                let names = noticeable.map { "aps.\($0)" }.joined(separator: ", ")
                warn(names, "a background push must carry no alert, sound or badge")
            }
            if !wakes { warn("aps.content-available", "a background push needs \"content-available\":1") }
        case .alert:
            if noticeable.isEmpty, wakes {
                warn("aps", "it is silent: send it with push type background and priority 5")
            } else if noticeable.isEmpty {
                warn("aps", "nothing in it is for the user: an alert push needs alert, badge or sound")
            }
        default: break
        }
        if aps["mutable-content"]?.isOne == true, !hasAlert {
            warn("aps.mutable-content", "a service extension runs only for a push with an alert")
        }
        if aps["category"] != nil, !hasAlert { warn("aps.category", "the buttons of a category need an alert") }
    }

    private mutating func checkActivity(_ aps: [String: PayloadValue]) {
        let event = aps["event"]?.text
        if let event, !["start", "update", "end"].contains(event) {
            warn("aps.event", "\(event) is none of start, update and end")
        }
        var needed = ["event", "timestamp"]
        if event != "end" { needed.append("content-state") }
        if event == "start" { needed += ["attributes-type", "attributes", "alert"] }
        for key in needed where aps[key] == nil {
            warn("aps.\(key)", "a Live Activity push\(event.map { " that says \($0)" } ?? "") needs aps.\(key)")
        }
        if event == "end", aps["content-state"] == nil {
            warn("aps.content-state", "an end should carry the last content-state")
        }
    }

    mutating func checkSound(_ sound: PayloadValue?, at place: String) {
        guard let sound else { return }
        if let members = sound.members {
            for key in members.keys.sorted() {
                if let kind = PayloadKey.sound[key] {
                    checkType(of: members[key], kind, at: "\(place).\(key)")
                } else {
                    let likely = PayloadKey.likely(key, in: PayloadKey.sound.keys).map { ": did you mean \($0)?" }
                    warn("\(place).\(key)", "\(place).\(key) is not a known key\(likely ?? "")")
                }
            }
            if let volume = members["volume"]?.double, !(0...1).contains(volume) {
                warn("\(place).volume", "\(place).volume must be from 0 to 1")
            }
        }
        guard let name = sound.text ?? sound.members?["name"]?.text, name != "default" else { return }
        if !["aiff", "aif", "aifc", "wav", "caf"].contains(where: { name.lowercased().hasSuffix("." + $0) }) {
            warn(place, "sound \(name) is in no format that is played: it must be an aiff, wav or caf file")
        }
        guard let bundle else { return }
        guard let file = bundle.sound(name) else { return warn(place, "sound \(name) is not in the bundle") }
        if let fault = file.fault { warn(place, "sound \(name) \(fault)") }
    }
}
