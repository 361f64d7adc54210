import HeraldService
import HeraldTrust

/// Instructions for clients in which Apple's host is fixed: how to direct them to this service.
struct AppleNamesGuide {
    /// The path of the authority's certificate.
    let authority: String

    var lines: [String] {
        let names = ServerName.apple.map(\.description)
        return [
            "",
            "Add these lines to /etc/hosts on the clients' machines. On other machines, write this machine's address:",
            "",
        ] + names.map { "    127.0.0.1  \($0)" } + [
            "",
            "On the clients' machines, trust \(authority):",
            "",
            "    Debian, Ubuntu  cp \(authority) /usr/local/share/ca-certificates/herald.crt && update-ca-certificates",
            "    Fedora, RHEL    cp \(authority) /etc/pki/ca-trust/source/anchors/herald.pem && update-ca-trust",
            "    macOS           security add-trusted-cert -d -r trustRoot "
                + "-k /Library/Keychains/System.keychain \(authority)",
            "    Java            keytool -importcert -cacerts -alias herald -file \(authority)",
            "    Node.js         NODE_EXTRA_CA_CERTS=\(authority)",
            "    Python, Go      SSL_CERT_FILE=\(authority)",
            "",
            "Clients use port 443 or 2197 (for 443, serve with --api-port 443), and 2195 and 2196 for the binary",
            "interface and its feedback. While the lines exist, these machines do not reach Apple's own services.",
            "In a container network, give Herald's container the names as network aliases instead of the lines.",
            "Remove the lines and the authority when you are done.",
        ]
    }
}
