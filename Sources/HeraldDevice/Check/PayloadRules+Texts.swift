import HeraldModel

extension PayloadRules {
    mutating func checkAlert(_ alert: PayloadValue) {
        if alert == .string("") { warn("aps.alert", "aps.alert is empty: nothing is shown") }
        guard let members = alert.members else { return }
        for key in members.keys.sorted() {
            let place = "aps.alert.\(key)"
            if let kind = PayloadKey.alert[key], key != "sound" || pushType == .liveactivity {
                let isPlain = kind == .textOrKey && pushType != .liveactivity
                checkType(of: members[key], isPlain ? .text : kind, at: place)
            } else if PayloadKey.aps[key] != nil {
                warn(place, "\(place) is ignored by the system: did you mean aps.\(key)?")
            } else if let likely = PayloadKey.likely(key, in: PayloadKey.alert.keys) {
                warn(place, "\(place) is not a known key: did you mean \(likely)?")
            } else {
                warn(place, "\(place) is ignored by the system: put custom data beside aps")
            }
        }
        let texts = ["title", "subtitle", "body", "title-loc-key", "subtitle-loc-key", "loc-key"]
        if texts.allSatisfy({ members[$0] == nil || members[$0] == .null || members[$0] == .string("") }) {
            warn("aps.alert", "aps.alert has neither a text nor the key of one: nothing is shown")
        }
        for prefix in ["title-", "subtitle-", ""] {
            checkKey(members["\(prefix)loc-key"], members["\(prefix)loc-args"], at: "aps.alert.\(prefix)loc-key")
        }
        for name in ["title", "subtitle", "body"] where pushType == .liveactivity {
            guard let inner = members[name]?.members else { continue }
            checkKey(inner["loc-key"], inner["loc-args"], at: "aps.alert.\(name).loc-key")
        }
        checkKey(members["action-loc-key"], nil, at: "aps.alert.action-loc-key")
    }

    /// A key of the bundle with its arguments, in every language.
    private mutating func checkKey(_ key: PayloadValue?, _ arguments: PayloadValue?, at place: String) {
        guard let key = key?.text else {
            if arguments?.elements?.isEmpty == false { warn(place, "there are arguments without \(place)") }
            return
        }
        guard let bundle else { return }
        let given = arguments?.elements?.count ?? 0
        let languages = bundle.languages
        let missing = languages.filter { bundle.texts[$0]?[key] == nil }
        if languages.isEmpty {
            warn(place, "key \(key) is nowhere: the bundle has no Localizable.strings")
        } else if !missing.isEmpty {
            warn(place, "key \(key) missing in \(missing.joined(separator: ", "))")
        }
        var byCount: [Int: [String]] = [:]
        for language in languages {
            guard let text = bundle.texts[language]?[key] else { continue }
            let format = FormatString(text.format)
            byCount[format.argumentCount, default: []].append(language)
            if let conversion = format.foreignConversions.first {
                warn(
                    place,
                    "\(conversion) in \(key) (\(language)): arguments are texts, write %@, and %% for a percent sign"
                )
            }
            if format.mixesOrders { warn(place, "\(key) (\(language)) mixes %@ and %1$@: number all of them") }
            if text.isPlural {
                warn(place, "\(key) (\(language)) is a plural: arguments are texts, so that its form other is shown")
            }
        }
        for (count, languages) in byCount.sorted(by: { $0.key < $1.key }) where count != given {
            let noun = count == 1 ? "argument" : "arguments"
            let whose = byCount.count > 1 ? " (\(languages.joined(separator: ", ")))" : ""
            warn(place, "\(key) takes \(count) \(noun)\(whose), \(given) given")
        }
    }

    /// What the payload names in the bundle besides texts and sounds.
    mutating func checkBundle(_ aps: [String: PayloadValue]) {
        guard let bundle else { return }
        if let image = aps["alert"]?.members?["launch-image"]?.text, bundle.image(image) == nil {
            warn("aps.alert.launch-image", "launch image \(image) is not in the bundle")
        }
        if let category = aps["category"]?.text, !bundle.categories.isEmpty, bundle.categories[category] == nil {
            warn("aps.category", "category \(category) is not declared by the app")
        }
        if aps["content-available"]?.isOne == true, !bundle.wakesInBackground, bundle.identifier != nil {
            warn("aps.content-available", "UIBackgroundModes of the app lacks remote-notification: it is not woken")
        }
    }
}
