import HeraldJSON

/// A notification category with its buttons, from the app's `NotificationCategories.json` or registered by the app.
public struct NotificationCategory: Hashable, Sendable, Codable {
    /// A button.
    public struct Action: Hashable, Sendable, Codable {
        /// The identifier that the app gets when it is pressed.
        public var identifier: String
        /// The title, or its key in `Localizable.strings`.
        public var title: String
        /// Whether pressing it opens the app.
        public var opensApp: Bool
        /// Whether it is shown as destructive.
        public var isDestructive: Bool
        /// Whether it needs an unlocked device.
        public var needsUnlocking: Bool
        /// Whether it requests a text.
        public var takesText: Bool

        /// Creates a button.
        public init(
            identifier: String,
            title: String,
            opensApp: Bool = false,
            isDestructive: Bool = false,
            needsUnlocking: Bool = false,
            takesText: Bool = false
        ) {
            self.identifier = identifier
            self.title = title
            self.opensApp = opensApp
            self.isDestructive = isDestructive
            self.needsUnlocking = needsUnlocking
            self.takesText = takesText
        }

        private enum CodingKeys: String, CodingKey {
            case identifier, title
            case opensApp = "foreground"
            case isDestructive = "destructive"
            case needsUnlocking = "authentication_required"
            case takesText = "text_input"
        }
    }

    /// The most buttons that are shown.
    public static let maximumActions = 4

    /// The `category` of a payload that selects it.
    public var identifier: String
    /// The buttons, in order.
    public var actions: [Action]

    /// Creates a category.
    public init(identifier: String, actions: [Action]) {
        self.identifier = identifier
        self.actions = actions
    }

    /// Reads the declarations: `{"INVITATION":{"actions":[{"identifier":"accept","title":"Accept"}]}}`.
    /// - Throws: ``BundleError``.
    static func read(_ bytes: [UInt8], file: String, limits: BundleLimits) throws -> [String: NotificationCategory] {
        guard let members = JSON.Object(bytes, rules: .lenient) else {
            throw BundleError(file, "is not a JSON object")
        }
        return try read(members, file: file, limits: limits)
    }

    /// Reads the members of that object.
    /// - Throws: ``BundleError``.
    static func read(
        _ members: JSON.Object,
        file: String,
        limits: BundleLimits
    ) throws -> [String: NotificationCategory] {
        guard members.count <= limits.categories else {
            throw BundleError(
                file,
                "has \(members.count) categories, and may have \(limits.categories): remove those that no payload names"
            )
        }
        // Names that differ by normalization only are one key of a dictionary.
        return try Dictionary(
            members.map { name, entry in
                guard name.utf8.count <= limits.actionTextBytes else {
                    throw BundleError(
                        file,
                        "the name of the category \(name.prefix(32))… is longer than \(limits.actionTextBytes) bytes: shorten it"
                    )
                }
                guard let actions = entry.members?["actions"]?.elements else {
                    throw BundleError(file, "\(name) has no list \"actions\"")
                }
                guard actions.count <= limits.actions else {
                    throw BundleError(
                        file,
                        "\(name) has \(actions.count) actions, and may have \(limits.actions): remove the last ones,"
                            + " a notification shows \(maximumActions)"
                    )
                }
                let category = NotificationCategory(
                    identifier: name,
                    actions: try actions.map { try action($0, of: name, file: file, limits: limits) }
                )
                return (name, category)
            },
            uniquingKeysWith: { $1 }
        )
    }

    /// The members of the object that declares the categories; of several with the same identifier, the last counts.
    static func members(_ categories: [NotificationCategory]) throws -> JSON.Object {
        try categories.reduce(into: [:]) { $0[$1.identifier] = .object(["actions": try JSON(encoding: $1.actions)]) }
    }

    private static func action(
        _ value: JSON,
        of category: String,
        file: String,
        limits: BundleLimits
    ) throws -> Action {
        let members = value.members ?? [:]
        guard let identifier = members["identifier"]?.text, let title = members["title"]?.text else {
            throw BundleError(file, "an action of \(category) has no \"identifier\" or no \"title\"")
        }
        for (key, text) in [("identifier", identifier), ("title", title)] {
            guard text.utf8.count <= limits.actionTextBytes else {
                throw BundleError(
                    file,
                    "\"\(key)\" of an action of \(category) is longer than \(limits.actionTextBytes) bytes: shorten it"
                )
            }
        }
        func isSet(_ key: String) throws -> Bool {
            switch members[key] {
            case nil: false
            case .boolean(let truth): truth
            default: throw BundleError(file, "\"\(key)\" of \(category) must be true or false")
            }
        }
        return Action(
            identifier: identifier,
            title: title,
            opensApp: try isSet("foreground"),
            isDestructive: try isSet("destructive"),
            needsUnlocking: try isSet("authentication_required"),
            takesText: try isSet("text_input")
        )
    }
}
