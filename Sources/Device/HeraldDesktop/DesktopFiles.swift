import Foundation
import HeraldModel
import HeraldPhone

/// Icons and sounds of apps as files that the desktop can read, in a folder that is deleted with the agent.
struct DesktopFiles {
    static let maximumFiles = 64

    private(set) var files = DesktopPlan.Files()
    private let folder: String?
    private var count = 0
    /// Icons and sounds that were written or are missing, so that they are not requested again.
    private var icons: Set<Topic> = []
    private var sounds: [String: String?] = [:]

    /// Creates the folder in the session's runtime directory; without one there are no icons and sounds.
    init(environment: [String: String]) {
        let session = environment["XDG_RUNTIME_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        let parent = URL(fileURLWithPath: session ?? NSTemporaryDirectory()).standardizedFileURL.path
        folder = AgentFile.makeTemporaryFolder(in: parent, named: "herald-desktop")
    }

    /// Writes the files that a snapshot needs.
    mutating func prepare(for snapshot: PhoneSnapshot, from view: any DeviceView) async {
        let topics = Set(snapshot.apps.map(\.topic))
        icons.formIntersection(topics)
        files.icons = files.icons.filter { topics.contains($0.key) }
        for app in snapshot.apps where app.icon && !icons.contains(app.topic) {
            icons.insert(app.topic)
            guard let bytes = await view.file(.icon, of: app.topic, named: ""), let kind = Self.kind(bytes) else {
                continue
            }
            files.icons[app.topic] = write(bytes, kind)
        }
        let present = Set(snapshot.sounds.map(\.id))
        files.sounds = files.sounds.filter { present.contains($0.key) }
        for sound in snapshot.sounds where sound.name != "default" && files.sounds[sound.id] == nil {
            let key = "\(sound.topic)/\(sound.name)"
            if sounds[key] == nil, sounds.count < Self.maximumFiles {
                let bytes = await view.file(.sound, of: sound.topic, named: sound.name)
                sounds[key] = .some(bytes.flatMap { write($0, Self.fileExtension(sound.name)) })
            }
            files.sounds[sound.id] = sounds[key] ?? nil
        }
    }

    func remove() {
        guard let folder else { return }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private mutating func write(_ bytes: [UInt8], _ kind: String) -> String? {
        guard let folder, count < Self.maximumFiles else { return nil }
        count += 1
        let path = "\(folder)/\(count).\(kind)"
        return FileManager.default.createFile(atPath: path, contents: Data(bytes)) ? path : nil
    }

    private static func kind(_ icon: [UInt8]) -> String? {
        if icon.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "png" }
        return icon.first == UInt8(ascii: "<") ? "svg" : nil
    }

    private static func fileExtension(_ name: String) -> String {
        let text = (name as NSString).pathExtension
        return text.count <= 8 && text.allSatisfy { $0.isASCII && $0.isLetter } ? text : "sound"
    }
}
