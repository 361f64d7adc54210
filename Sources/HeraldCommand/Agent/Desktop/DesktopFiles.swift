import Foundation
import HeraldDevice
import HeraldModel

/// Icons and sounds of apps as files that the desktop can read, in a folder that goes with the agent.
struct DesktopFiles {
    /// How many files there are at most.
    static let maximumFiles = 64

    private(set) var files = DesktopPlan.Files()
    private let folder: String?
    private var count = 0
    /// What was written or is not there, so that it is not asked for again.
    private var icons: Set<Topic> = []
    private var sounds: [String: String?] = [:]

    /// Makes the folder, where the session keeps what ends with it; without one there are no icons and no sounds.
    init(environment: [String: String]) {
        let session = environment["XDG_RUNTIME_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        let place = URL(fileURLWithPath: session ?? NSTemporaryDirectory()).standardizedFileURL.path
        folder = AgentFile.makeTemporaryFolder(in: place, named: "herald-desktop")
    }

    /// Writes what the snapshot names and is not there yet.
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

    /// Removes the folder.
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
