extension Presentation: Encodable {
    private enum CodingKeys: String, CodingKey {
        case shown, place, localization, title, subtitle, body, buttons, slider, actions, badge, sound, critical, volume
        case launchImage = "launch_image"
        case backgroundLaunch = "background_launch"
        case seconds
        case extensionSeconds = "extension_seconds"
        case deliveredToApp = "delivered_to_app"
        case thread, category, interruption, replaces, activity, reasons
    }

    /// One flat object; `badge` is a number or `unchanged`, `sound` a name or null, and what does not apply is left out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isShown, forKey: .shown)
        try container.encodeIfPresent(place, forKey: .place)
        try container.encodeIfPresent(language, forKey: .localization)
        try container.encodeIfPresent(alert?.title, forKey: .title)
        try container.encodeIfPresent(alert?.subtitle, forKey: .subtitle)
        try container.encodeIfPresent(alert?.body, forKey: .body)
        try container.encode(buttons, forKey: .buttons)
        try container.encodeIfPresent(slider, forKey: .slider)
        if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
        if let badge {
            try container.encode(badge, forKey: .badge)
        } else {
            try container.encode("unchanged", forKey: .badge)
        }
        try container.encode(sound?.name, forKey: .sound)
        if sound?.isCritical == true { try container.encode(true, forKey: .critical) }
        try container.encodeIfPresent(sound?.volume, forKey: .volume)
        try container.encodeIfPresent(launchImage?.description, forKey: .launchImage)
        try container.encode(backgroundSeconds != nil, forKey: .backgroundLaunch)
        try container.encodeIfPresent(backgroundSeconds, forKey: .seconds)
        try container.encodeIfPresent(extensionSeconds, forKey: .extensionSeconds)
        try container.encode(isDeliveredToApp, forKey: .deliveredToApp)
        try container.encodeIfPresent(thread, forKey: .thread)
        try container.encodeIfPresent(category, forKey: .category)
        try container.encodeIfPresent(interruption, forKey: .interruption)
        try container.encodeIfPresent(replaces, forKey: .replaces)
        try container.encodeIfPresent(activity, forKey: .activity)
        try container.encode(reasons, forKey: .reasons)
    }
}

extension Presentation.LaunchImage: CustomStringConvertible {
    /// The file, or the words for what is not one.
    public var description: String {
        switch self {
        case .named(let name), .informationFile(let name): name
        case .snapshot: "the previous snapshot"
        case .standard: "Default.png"
        }
    }
}

extension Presentation.Activity: Codable {
    private enum CodingKeys: String, CodingKey {
        case event, state
        case content = "content_state"
        case staleDate = "stale_date"
        case dismissalDate = "dismissal_date"
    }

    /// Reads what was written.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            event: try container.decode(String.self, forKey: .event),
            state: try container.decode(State.self, forKey: .state),
            content: try container.decodeIfPresent(PayloadValue.self, forKey: .content),
            staleDate: try container.decodeIfPresent(Double.self, forKey: .staleDate),
            dismissalDate: try container.decodeIfPresent(Double.self, forKey: .dismissalDate)
        )
    }

    /// One object with dates in UNIX seconds.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(event, forKey: .event)
        try container.encode(state, forKey: .state)
        try container.encodeIfPresent(content, forKey: .content)
        try container.encodeIfPresent(staleDate, forKey: .staleDate)
        try container.encodeIfPresent(dismissalDate, forKey: .dismissalDate)
    }
}

extension PayloadValue: Codable {
    /// Reads any JSON.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let truth = try? container.decode(Bool.self) {
            self = .boolean(truth)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let elements = try? container.decode([PayloadValue].self) {
            self = .array(elements)
        } else {
            self = .object(try container.decode([String: PayloadValue].self))
        }
    }

    /// The value as JSON; what was not read is null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null, .unread: try container.encodeNil()
        case .boolean(let truth): try container.encode(truth)
        case .number(let number):
            if let whole = Int(exactly: number) { try container.encode(whole) } else { try container.encode(number) }
        case .string(let text): try container.encode(text)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }
}
