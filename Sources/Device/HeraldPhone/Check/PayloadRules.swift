import HeraldJSON
import HeraldModel

/// The rules for payloads that are JSON objects: keys, types and combinations.
struct PayloadRules {
    let pushType: PushType
    let bundle: AppBundle?
    let now: Double
    /// Whether the service takes the payload for a background notification if no push type is declared.
    var isSilent = false
    /// Whether the request declares the push type.
    var isTypeDeclared = true
    private(set) var findings: [Finding] = []

    private mutating func warn(_ place: String, _ message: String) {
        findings.append(Finding(.warning, place, message))
    }

    mutating func check(_ members: JSON.Object) {
        checkTop(members)
        if let value = members["aps"] {
            if let aps = value.members { checkAps(aps) } else { warn("aps", "aps must be a dictionary") }
        } else if ![.mdm, .fileprovider, .voip, .pushtotalk, .location].contains(pushType) {
            warn("aps", "aps is missing")
        }
        for finding in PersonalData.findings(in: members) { findings.append(finding) }
    }

    private mutating func checkTop(_ members: JSON.Object) {
        for key in members.names.sorted() where key != "aps" {
            if PayloadKey.misplaced.contains(key) {
                warn(key, "\(key) is beside aps, where it is the app's own data: did you mean aps.\(key)?")
            } else if members["aps"] == nil, LikelyKey.to(key, in: ["aps"]) != nil {
                warn(key, "\(key) is not a known key: did you mean aps?")
            } else if key == "herald" {
                checkHerald(members[key])
            } else if members[key]?.members?["drill"] != nil, LikelyKey.to(key, in: ["herald"]) != nil {
                warn(key, "\(key).drill has no effect: did you mean herald.drill?")
            }
        }
    }

    private mutating func checkHerald(_ herald: JSON?) {
        guard let members = herald?.members else {
            if herald != .null { warn("herald", "herald must be a dictionary, like {\"drill\":{…}}") }
            return
        }
        for key in members.names.sorted() where members[key] != .null {
            if key == "drill" {
                warn(
                    "herald.drill",
                    "herald.drill asks for a failure on purpose: only Herald's HTTP/2 API with payload-drills heeds it, and "
                        + "every other service delivers the notification"
                )
            } else if key == "tag" {
                guard members[key]?.text.map(CatchTag.isWhole) != true else { continue }
                warn("herald.tag", "herald.tag must be a string of 1 to \(CatchTag.maximumLength) characters")
            } else if let likely = LikelyKey.to(key, in: ["drill", "tag"]) {
                warn("herald.\(key)", "herald.\(key) is not a known key: did you mean \(likely)?")
            }
        }
    }

    private mutating func checkAps(_ aps: JSON.Object) {
        for key in aps.names.sorted() {
            if let kind = PayloadKey.aps[key] {
                checkType(of: aps[key], kind, at: "aps.\(key)")
            } else if let likely = LikelyKey.to(key, in: PayloadKey.aps.keys) {
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

    private mutating func checkType(of value: JSON?, _ kind: PayloadKey.Kind, at place: String) {
        guard let value else { return }
        if !kind.fits(value) {
            warn(place, "\(place) must be \(kind.words)")
        } else if kind == .one, !value.isOne {
            warn(place, "\(place) has no meaning unless it is 1")
        }
    }

    private mutating func checkValues(_ aps: JSON.Object) {
        if let badge = aps["badge"], badge.number != nil, badge.badge == nil {
            warn("aps.badge", "aps.badge must be a whole number from 0 to \(PhoneAction.highestBadge)")
        }
        if let level = aps["interruption-level"]?.text,
            !["passive", "active", "time-sensitive", "critical"].contains(level)
        {
            warn("aps.interruption-level", "\(level) is none of passive, active, time-sensitive and critical")
        }
        if pushType != .liveactivity, let score = aps["relevance-score"], score.number != nil, !score.isShare {
            warn("aps.relevance-score", "aps.relevance-score must be from 0 to 1")
        }
        for key in ["stale-date", "dismissal-date", "timestamp"] {
            guard let value = aps[key], let number = value.number else { continue }
            guard let date = value.time else {
                let isMilliseconds = number.double.map { (100_000_000_000...100_000_000_000_000).contains($0) } ?? false
                let hint = isMilliseconds ? "; this looks like milliseconds" : ", in the years 1 to 9999"
                warn("aps.\(key)", "aps.\(key) must be UNIX seconds\(hint)")
                continue
            }
            if date > 100_000_000_000 {
                warn("aps.\(key)", "aps.\(key) must be UNIX seconds; this looks like milliseconds")
            } else if key == "stale-date", date <= now {
                warn("aps.\(key)", "aps.\(key) is in the past: the Live Activity is outdated at once")
            } else if key == "dismissal-date", date <= now {
                warn("aps.\(key)", "aps.\(key) is in the past: the Live Activity is removed at once")
            } else if key == "timestamp", date < now - 86_400 {
                warn("aps.\(key)", "aps.\(key) is in the past: an update older than the shown content is ignored")
            }
        }
    }

    /// Checks keys that must, or must not, be combined.
    private mutating func checkMixture(_ aps: JSON.Object) {
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
            if isSilent {
                warn("aps", "it is silent: send it with push type background and priority 5")
            } else if noticeable.isEmpty {
                warn("aps", "it has nothing for the user: an alert push needs alert, badge or sound")
            } else if wakes, !isTypeDeclared {
                findings.append(Finding(.note, "aps.content-available", Self.wakingAlert(noticeable)))
            }
        default: break
        }
        if aps["mutable-content"]?.isOne == true, !hasAlert {
            warn("aps.mutable-content", "a service extension runs only for a push with an alert")
        }
        if aps["category"] != nil, !hasAlert { warn("aps.category", "the buttons of a category need an alert") }
    }

    private static func wakingAlert(_ noticeable: [String]) -> String {
        "beside \(noticeable.joined(separator: " and ")) it is not silent: the device shows the notification and wakes the app; "
            + "by Apple's guide of 2015 the app may not be woken. Name the push type: alert"
    }

    private mutating func checkActivity(_ aps: JSON.Object) {
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

    private mutating func checkSound(_ sound: JSON?, at place: String) {
        guard let sound else { return }
        if let members = sound.members {
            for key in members.names.sorted() {
                if let kind = PayloadKey.sound[key] {
                    checkType(of: members[key], kind, at: "\(place).\(key)")
                } else {
                    let likely = LikelyKey.to(key, in: PayloadKey.sound.keys).map { ": did you mean \($0)?" }
                    warn("\(place).\(key)", "\(place).\(key) is not a known key\(likely ?? "")")
                }
            }
            if let volume = members["volume"], volume.number != nil, !volume.isShare {
                warn("\(place).volume", "\(place).volume must be from 0 to 1")
            }
        }
        guard let name = sound.text ?? sound.members?["name"]?.text, name != "default" else { return }
        if !["aiff", "aif", "aifc", "wav", "caf"].contains(where: { name.lowercased().hasSuffix("." + $0) }) {
            warn(place, "sound \(name) is not in a playable format: it must be an aiff, wav or caf file")
        }
        guard let bundle else { return }
        guard let file = bundle.sound(name) else { return warn(place, "sound \(name) is not in the bundle") }
        if let fault = file.fault { warn(place, "sound \(name) \(fault)") }
    }

    // MARK: - Texts and the bundle

    private mutating func checkAlert(_ alert: JSON) {
        if alert == .string("") { warn("aps.alert", "aps.alert is empty: nothing is shown") }
        guard let members = alert.members else { return }
        for key in members.names.sorted() {
            let place = "aps.alert.\(key)"
            if let kind = PayloadKey.alert[key], key != "sound" || pushType == .liveactivity {
                let isPlain = kind == .textOrKey && pushType != .liveactivity
                checkType(of: members[key], isPlain ? .text : kind, at: place)
            } else if PayloadKey.aps[key] != nil {
                warn(place, "\(place) is ignored by the system: did you mean aps.\(key)?")
            } else if let likely = LikelyKey.to(key, in: PayloadKey.alert.keys) {
                warn(place, "\(place) is not a known key: did you mean \(likely)?")
            } else {
                warn(place, "\(place) is ignored by the system: put custom data beside aps")
            }
        }
        let texts = ["title", "subtitle", "body", "title-loc-key", "subtitle-loc-key", "loc-key"]
        if texts.allSatisfy({ members[$0] == nil || members[$0] == .null || members[$0] == .string("") }) {
            warn("aps.alert", "aps.alert has neither a text nor a key: nothing is shown")
        }
        for prefix in ["title-", "subtitle-", ""] {
            checkKey(members["\(prefix)loc-key"], members["\(prefix)loc-args"], at: "aps.alert.\(prefix)loc-key")
        }
        for name in ["title", "subtitle", "body"] where pushType == .liveactivity {
            guard let inner = members[name]?.members else { continue }
            checkKey(inner["loc-key"], inner["loc-args"], at: "aps.alert.\(name).loc-key")
        }
        checkKey(members["action-loc-key"], nil, at: "aps.alert.action-loc-key")
        checkBrevity(members)
    }

    /// Checks that a watch can show the title, and that the dictionary is worth its bytes.
    private mutating func checkBrevity(_ members: JSON.Object) {
        let limit = PayloadCheck.glanceCharacters
        let reason = "a watch shows a title only briefly, and \(limit) can be read at a glance"
        if let title = members["title"]?.text, title.count > limit {
            warn("aps.alert.title", "aps.alert.title has \(title.count) characters: \(reason)")
        }
        if let bundle, let key = members["title-loc-key"]?.text {
            let arguments = (members["title-loc-args"]?.elements ?? []).map(\.argument)
            let long = bundle.languages.filter { language in
                guard let text = bundle.texts[language]?[TextKey(key)] else { return false }
                return FormatString(text.format).filled(with: arguments).count > limit
            }
            if !long.isEmpty {
                let languages = long.joined(separator: ", ")
                warn(
                    "aps.alert.title-loc-key",
                    "key \(key) has more than \(limit) characters in \(languages): \(reason)"
                )
            }
        }
        if members.count == 1, members["body"]?.text != nil, pushType != .liveactivity {
            findings.append(
                Finding(
                    .note,
                    "aps.alert",
                    "aps.alert has only a body: a string says the same in fewer bytes, as Apple's payload guide wants it; "
                        + "Apple's key reference prefers the dictionary"
                )
            )
        }
    }

    /// Checks a key of the bundle and its arguments in every language.
    private mutating func checkKey(_ key: JSON?, _ arguments: JSON?, at place: String) {
        guard let key = key?.text else {
            if arguments?.elements?.isEmpty == false { warn(place, "there are arguments without \(place)") }
            return
        }
        guard let bundle else { return }
        let given = arguments?.elements?.count ?? 0
        let languages = bundle.languages
        let missing = languages.filter { bundle.texts[$0]?[TextKey(key)] == nil }
        if languages.isEmpty {
            warn(place, "key \(key) does not exist: the bundle has no Localizable.strings")
        } else if !missing.isEmpty {
            warn(place, "key \(key) missing in \(missing.joined(separator: ", "))")
        }
        var byCount: [Int: [String]] = [:]
        for language in languages {
            guard let text = bundle.texts[language]?[TextKey(key)] else { continue }
            let format = FormatString(text.format)
            byCount[format.argumentCount, default: []].append(language)
            if let conversion = format.foreignConversions.first {
                warn(
                    place,
                    "\(conversion) in \(key) (\(language)): arguments are texts, write %@, and %% for a percent sign"
                )
            }
            if format.mixesOrders { warn(place, "\(key) (\(language)) mixes %@ and %1$@: number all of them") }
            for fault in text.faults { warn(place, "\(key) (\(language)) \(fault)") }
            if text.isPlural {
                warn(place, "\(key) (\(language)) is a plural: arguments are texts, so the form other is shown")
            }
        }
        for (count, languages) in byCount.sorted(by: { $0.key < $1.key }) where count != given {
            let noun = count == 1 ? "argument" : "arguments"
            let suffix = byCount.count > 1 ? " (\(languages.joined(separator: ", ")))" : ""
            warn(place, "\(key) takes \(count) \(noun)\(suffix), \(given) given")
        }
    }

    /// Checks the image, category and background mode that the payload needs in the bundle.
    private mutating func checkBundle(_ aps: JSON.Object) {
        guard let bundle else { return }
        if let image = aps["alert"]?.members?["launch-image"]?.text, bundle.image(image) == nil {
            warn("aps.alert.launch-image", "launch image \(image) is not in the bundle")
        }
        if let category = aps["category"]?.text {
            if !bundle.categories.isEmpty, bundle.categories[category] == nil {
                warn(
                    "aps.category",
                    "category \(category) is not declared by the bundle: the app has to register it when it starts"
                )
            }
            findings += DestructiveActions.findings(of: category, in: bundle, place: "aps.category")
        }
        if aps["content-available"]?.isOne == true, !bundle.wakesInBackground, bundle.identifier != nil {
            warn("aps.content-available", "UIBackgroundModes of the app lacks remote-notification: it is not woken")
        }
    }
}
