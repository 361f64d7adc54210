import HeraldTrust

/// How clients that cannot be told another address are led to this service under Apple's names.
struct AppleRecipe {
    /// Where the authority's certificate is.
    let authority: String

    var lines: [String] {
        let names = ServerName.apple.map(\.description)
        return [
            "",
            "Lead clients here, by these lines in /etc/hosts on their machines (127.0.0.1 where they run on this one):",
            "",
        ] + names.map { "    127.0.0.1  \($0)" } + [
            "",
            "Have them trust \(authority), by the way that they know:",
            "",
            "    Debian, Ubuntu  cp \(authority) /usr/local/share/ca-certificates/herald.crt && update-ca-certificates",
            "    Fedora, RHEL    cp \(authority) /etc/pki/ca-trust/source/anchors/herald.pem && update-ca-trust",
            "    macOS           security add-trusted-cert -d -r trustRoot "
                + "-k /Library/Keychains/System.keychain \(authority)",
            "    Java            keytool -importcert -cacerts -alias herald -file \(authority)",
            "    Node.js         NODE_EXTRA_CA_CERTS=\(authority)",
            "    Python, Go      SSL_CERT_FILE=\(authority)",
            "",
            "Clients use port 443 or 2197 (serve with --api-port 443 for the former), and 2195 and 2196 for the binary",
            "interface and its feedback. As long as the lines stand, these machines do not reach Apple's own services.",
            "Take them out, and the authority, when you are done.",
        ]
    }
}
