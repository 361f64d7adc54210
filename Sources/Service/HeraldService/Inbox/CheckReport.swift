package import HeraldModel
package import HeraldPhone

/// The report of `herald check` about a payload, as JSON.
package struct CheckReport: Encodable {
    /// A situation of the device, with its name in the output.
    struct Scenario {
        let name: String
        let change: @Sendable (inout DeviceSituation) -> Void

        /// The states of the app, then settings with the app in the background.
        static let all = [
            Scenario(name: "background") { _ in },
            Scenario(name: "not running") { $0.app = .notRunning },
            Scenario(name: "ended by the user") { $0.app = .endedByUser },
            Scenario(name: "locked") { $0.isLocked = true },
            Scenario(name: "foreground") { $0.app = .foreground },
            Scenario(name: "focus on") { $0.isFocused = true },
            Scenario(name: "muted") { $0.isMuted = true },
            Scenario(name: "style alert") { $0.style = .alert },
            Scenario(name: "style none") { $0.style = AlertStyle.none },
            Scenario(name: "alerts off") { $0.settings.alerts = false },
            Scenario(name: "badges off") { $0.settings.badges = false },
            Scenario(name: "sounds off") { $0.settings.sounds = false },
        ]
    }

    /// The presentation in one language and scenario.
    package struct View: Encodable {
        let language: String
        package let state: String
        package let presentation: Presentation

        enum CodingKeys: String, CodingKey {
            case language, state
        }

        package func encode(to encoder: any Encoder) throws {
            try presentation.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(language, forKey: .language)
            try container.encode(state, forKey: .state)
        }
    }

    package let name: String
    package let check: PayloadCheck
    /// The languages in the report.
    package let languages: [String]
    /// The views by scenario, then by language; empty if the payload is refused.
    package let views: [View]

    package init(
        payload: [UInt8],
        name: String,
        pushType: PushType?,
        bundle: AppBundle?,
        languages: [String],
        now: Double
    ) {
        self.name = name
        check = PayloadCheck(payload, pushType: pushType, bundle: bundle, now: now)
        let known = bundle?.languages ?? []
        let languages = !languages.isEmpty ? languages : known.isEmpty ? ["en"] : known
        self.languages = languages
        guard check.isAccepted else {
            views = []
            return
        }
        let presenter = Presenter(bundle: bundle)
        let notification = IncomingNotification(payload: payload, pushType: pushType)
        views = Scenario.all.flatMap { scenario in
            languages.map { language in
                var situation = DeviceSituation(now: now)
                situation.languages = [language]
                // Older than any update, so that every update changes it.
                situation.activity = ShownActivity(timestamp: 0)
                scenario.change(&situation)
                let presentation = presenter.presentation(of: notification, in: situation)
                return View(language: language, state: scenario.name, presentation: presentation)
            }
        }
    }

    private enum CodingKeys: String, CodingKey {
        case file, accepted, size, limit, http2, local, findings, presentations
        case pushType = "push_type"
        case compactSize = "compact_size"
        case binaryStatus = "binary_status"
    }

    private enum AnswerKeys: String, CodingKey {
        case status, reason
    }

    private enum LocalKeys: String, CodingKey {
        case accepted, reason
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .file)
        try container.encode(check.pushType, forKey: .pushType)
        try container.encode(check.isAccepted, forKey: .accepted)
        try container.encode(check.size, forKey: .size)
        try container.encode(check.compactSize, forKey: .compactSize)
        try container.encode(check.pushType.maximumPayloadBytes, forKey: .limit)
        var answer = container.nestedContainer(keyedBy: AnswerKeys.self, forKey: .http2)
        try answer.encode(check.refusal?.httpStatus ?? 200, forKey: .status)
        try answer.encode(check.refusal?.reason, forKey: .reason)
        try container.encode(check.binaryStatus, forKey: .binaryStatus)
        var local = container.nestedContainer(keyedBy: LocalKeys.self, forKey: .local)
        try local.encode(check.localFault == nil, forKey: .accepted)
        try local.encode(check.localFault, forKey: .reason)
        try container.encode(check.findings, forKey: .findings)
        try container.encode(views, forKey: .presentations)
    }
}
