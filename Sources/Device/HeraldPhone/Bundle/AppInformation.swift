import Foundation
import HeraldJSON
import HeraldModel

/// The parts of an app's `Info.plist` and folder that do not affect presentation.
struct AppInformation: Codable, Hashable, Sendable {
    /// The bundle identifier.
    var topic: Topic
    /// The name under the icon.
    var name: String
    /// Further topics of the app: the bundle identifier with a suffix.
    var further: [Topic] = []
    /// The environment of its registration (`aps-environment`).
    var environment: PushEnvironment?
    /// The permission that it requests (`HeraldNotificationTypes`).
    var wants = NotificationKind.allCases
    /// The app's own page (`HeraldScreenURL`).
    var screenURL: String?
    var icon: String?
    var programs: Set<ProgramEvent> = []
    var hasBundle = false

    /// Creates an app without a bundle.
    init(topic: Topic) {
        self.topic = topic
        name = topic.name
    }

    var topics: [Topic] { [topic] + further }
}

extension AppInformation {
    /// The most further topics of an app.
    static let maximumTopics = 16

    /// Reads `Info.plist` of a bundle, and looks for its icon and programs.
    /// - Throws: ``BundleError``.
    init(folder: String, limits: BundleLimits) throws {
        let file = folder + "/Info.plist"
        guard BundleFile.isFolder(folder) else {
            throw BundleError(folder, "is not a folder: name the app's folder, which contains Info.plist")
        }
        guard FileManager.default.fileExists(atPath: file) else {
            throw BundleError(folder, "has no Info.plist: an app's folder needs one with CFBundleIdentifier")
        }
        let members = try PropertyListFile.members(
            BundleFile.read(file, limit: limits.fileBytes),
            file: file,
            limits: limits
        )
        guard let text = members["CFBundleIdentifier"]?.text, let topic = Topic(text) else {
            throw BundleError(
                file,
                "CFBundleIdentifier must be ASCII letters, digits, - and _ in parts with dots between, like com.example.app"
            )
        }
        self.init(topic: topic)
        hasBundle = true
        name = members["CFBundleDisplayName"]?.text ?? members["CFBundleName"]?.text ?? topic.name
        try readRegistration(members, file: file)
        if let text = members["HeraldScreenURL"]?.text {
            guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()), url.host != nil
            else {
                throw BundleError(file, "HeraldScreenURL must be an address like http://localhost:8080/")
            }
            screenURL = text
        }
        icon = ["AppIcon.png", "AppIcon.svg"].first { BundleFile.isPlainFile(folder + "/" + $0) }
        programs = Set(
            ProgramEvent.allCases.filter { event in
                let path = "\(folder)/Programs/\(event.rawValue)"
                return BundleFile.isPlainFile(path) && access(path, X_OK) == 0
            }
        )
    }

    private mutating func readRegistration(_ members: JSON.Object, file: String) throws {
        switch members["aps-environment"]?.text {
        case nil: break
        case "production": environment = .production
        case "development": environment = .sandbox
        default: throw BundleError(file, "aps-environment must be development or production")
        }
        if let kinds = members["HeraldNotificationTypes"] {
            let read = kinds.elements?.map { $0.text.flatMap { NotificationKind(rawValue: $0) } } ?? [nil]
            guard !read.contains(nil) else {
                throw BundleError(file, "HeraldNotificationTypes must be a list of alert, badge and sound")
            }
            wants = NotificationKind.allCases.filter { read.contains($0) }
        }
        if let topics = members["HeraldTopics"] {
            let read = topics.elements?.map { $0.text.flatMap { Topic($0) } } ?? [nil]
            guard read.count <= Self.maximumTopics, read.allSatisfy({ $0?.name.hasPrefix(topic.name + ".") ?? false })
            else {
                throw BundleError(
                    file,
                    "HeraldTopics must be a list of \(Self.maximumTopics) topics at most that begin with \(topic).,"
                        + " like \(topic).voip"
                )
            }
            further = read.compactMap { $0 }
        }
    }
}
