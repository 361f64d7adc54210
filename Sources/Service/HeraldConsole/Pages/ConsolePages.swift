import HTTPTypes
import HeraldWeb
import Hummingbird

/// The console's page, which has all paths of the console for people, and its files.
///
/// The files' paths have a digest of all files, so that browsers may keep them for ever.
struct ConsolePages: Sendable {
    /// The paths of the page; `main.js` shows what belongs to each.
    static let paths = [
        "", "notifications", "notifications/:id", "inbox", "compose", "devices", "devices/:id", "providers",
        "providers/:id", "refusals", "counts", "channels", "drills", "tools", "settings",
    ]
    private static let forever = "public, max-age=31536000, immutable"

    func add(to router: Router<ConsoleContext>) {
        let pages = router.group().add(middleware: PageHeaders(policy: ConsoleAssets.policy))
        for path in Self.paths {
            pages.get(RouterPath(path)) { _, _ in
                WebReply.bytes(ConsoleAssets.page.bytes, type: ConsoleAssets.page.type)
            }
        }
        pages.get("assets/:version/:name") { _, context in
            // A page of another binary gets the file of this one, which is not kept.
            guard let asset = ConsoleAssets.files[try context.parameters.require("name")] else {
                throw HTTPError(.notFound)
            }
            var response = WebReply.bytes(asset.bytes, type: asset.type)
            if context.parameters.get("version") == ConsoleAssets.version {
                response.headers[.cacheControl] = Self.forever
            }
            return response
        }
    }
}
