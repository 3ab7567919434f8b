import type { createEgress } from '#platform/egress.ts'

import { standIn, type Traps } from './trap.ts'

type Call = Parameters<ReturnType<typeof createEgress>['request']>[1]
type Ports = Traps['ports']

export type Vector = {
  name: string
  address: string
  /** What the resolver says, turn by turn. */
  turns?: string[][]
  call?: Partial<Call>
  privateTargets?: string[]
  environment?: Record<string, string>
  /** A refusal with this reason, or the status of the only server that may be met. */
  outcome: RegExp | number
}

/** At least 200 ways to a trap, or around the guard. */
export function ssrfVectors(ports: Ports): Vector[] {
  const vectors = [
    ...spelledAddresses(ports),
    ...answersAndHeaders(ports),
    ...besideTheList(ports),
    ...redirectsAndProxies(ports),
  ]
  // Ports differ from run to run; the names of the tests should not.
  const nameOf = (name: string) =>
    ports.reduce((text, port, index) => text.replaceAll(`:${port}`, `:<trap ${index + 1}>`), name)
  return vectors.map((vector) => ({ ...vector, name: nameOf(vector.name) }))
}

const words = (text: string) => text.trim().split(/\s+/)
const sinkAt = (port: number) => `https://sink.example.com:${port}/`
const inner = '127.0.0.1 10.0.0.1 169.254.169.254 192.168.0.1 172.16.0.1 100.100.100.200 8.8.8.8'
const outside = /outside the public internet/

const ipv4Forms = `
  127.0.0.1 127.1 127.0.1 127.0.0.2 127.255.255.254 2130706433 017700000001 0x7f000001 0x7F.1
  0177.0.0.1 0x7f.0x0.0x0.0x1 00000177.0.0.1 0x7f.0.1 127.0.0.1. 0 0.0.0.0 0x0 00 0.0 0.0.0.0.
  %31%32%37.0.0.1 127%2e0%2e0%2e1 %30 127.0.0.%31 ①②⑦.0.0.1 ⑫7.0.0.1 １２７.0.0.1 127。0。0。1
  127．0．0．1 127｡0｡0｡1 ０ ⓪ 0ｘ7f.1 １２７。０。０。１ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 127.0.\u00ad0.1 12\u200b7.0.0.1
  169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 168.63.129.16 100.100.100.200 192.0.0.192
  10.0.0.1 10.1 192.168.1 172.16.0.1 255.255.255.255 4294967295 8.8.8.8 1.1`

const ipv6Forms = `
  [::1] [::] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:1]
  [::127.0.0.1] [::7f00:1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b:1::1] [2002:7f00:1::]
  [fe80::1] [fec0::1] [fd00:ec2::254] [fd20:ce::254] [fc00::1] [ff02::1] [2606:4700:4700::1111]`

const innerNames = `
  localhost LOCALHOST LocalHost localhost. sub.localhost a.b.localhost. %6c%6f%63alhost ⓛocalhost
  ｌｏｃａｌｈｏｓｔ local\u00adhost local\u200bhost localhoſt printer.local printer.LOCAL printer.local.
  metadata.google.internal metadata.google.internal. METADATA.GOOGLE.INTERNAL instance-data.ec2.internal
  db.internal router.home.arpa 1.0.0.127.in-addr.arpa hidden.onion a.test a.invalid sink.example
  kubernetes.default.svc kubernetes.default.svc.cluster.local nas.lan wiki.corp wiki.intranet
  localhost.localdomain metadata kubernetes host-gateway sink ip6-localhost sink.example.com. .
  host.docker.internal gateway.docker.internal -a.example.com a_b.example.com *.example.com`

const oddAddresses = (port: number) => [
  ...words(`http://sink.example.com:${port}/ http://127.0.0.1:${port}/ http://localhost:${port}/
    ftp://127.0.0.1:${port}/ file:///etc/passwd file://127.0.0.1/etc/passwd gopher://127.0.0.1:${port}/
    ws://127.0.0.1:${port}/ wss://127.0.0.1:${port}/ unix:/var/run/docker.sock data:text/plain,a
    javascript:alert(1) blob:https://127.0.0.1:${port}/x https:127.0.0.1:${port} https:/127.0.0.1:${port}
    https:///127.0.0.1:${port}/ //127.0.0.1:${port}/ 127.0.0.1:${port} sink.example.com https://
    https://? https://# https://[::1 https://[::1]x:${port}/ https://127.0.0.1:${port}:443/
    https://[fe80::1%25lo]:${port}/ https://[::1%lo]:${port}/ https://sink.example.com:99999/
    https://0x.0x.0x.256:${port}/ https://127.0.0.1.5:${port}/ https://١٢٧.0.0.1:${port}/
    https://http://127.0.0.1:${port}/ https://${'a'.repeat(64)}.example.com:${port}/`),
  `https://sink.example.com:${port}\\@127.0.0.1:${port}/`,
  `https:\\\\127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}\\.example.com/`,
  ` https://127.0.0.1:${port}/`,
  `https://127.0.\t0.1:${port}/`,
  `https://local\nhost:${port}/`,
  `https://127.0.0.1:${port}/ HTTP/1.1\r\nHost: sink.example.com`,
  `https://sink.example.com\u0000.127.0.0.1:${port}/`,
  `https://sink.example.com:${port}/${'a'.repeat(2048)}`,
]

const userInfo = (port: number) =>
  words(`
  https://good.example.com@127.0.0.1:${port}/ https://good.example.com:443@127.0.0.1:${port}/
  https://@127.0.0.1:${port}/ https://:@sink.example.com:${port}/ https://user@sink.example.com:${port}/
  https://good.example.com%2f@localhost:${port}/ https://a@b@127.0.0.1:${port}/
  https://good.example.com%23@[::1]:${port}/ https://user:password@sink.example.com:${port}/`)

const specialAnswers = `
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255
  169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255
  192.31.196.0 192.31.196.255 192.52.193.0 192.52.193.255 192.88.99.0 192.88.99.255 192.168.0.0
  192.168.255.255 192.175.48.0 192.175.48.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255
  203.0.113.0 203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 127.0.0.1 127.0.0.53
  169.254.169.254 169.254.170.2 169.254.42.42 168.63.129.16 100.100.100.200 192.0.0.192
  :: ::1 ::ffff:0:0 64:ff9b:: 64:ff9b::ffff:ffff 64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100::
  100::ffff:ffff:ffff:ffff 100:0:0:1:: 2001:: 2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2001:1::1 2001:2::
  2001:3:: 2001:4:112:: 2001:10:: 2001:20:: 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff 2001:30:: 2001:1ff::
  2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000:: 3ffe:: 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: 5f00:: 8000:: fc00::
  fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fd00:ec2::254 fd20:ce::254 fd00:42::42 fe80:: fe80::1%lo
  febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ff00:: ff02::1
  ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::1%lo 2606:4700::1%lo localhost 127.1 0x7f.1 2130706433`

function hiddenForms(ipv4: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  return words(`
    ::ffff:${ipv4} ::ffff:${hex} ::${ipv4} 64:ff9b::${ipv4} 64:ff9b:1::${hex} 2002:${hex}::1
    2001:0:${hex}::1 ::ffff:0:${hex} fe80::5efe:${ipv4} 2400:cb00:1:2:0:5efe:${hex}
    2400:cb00:1:2:200:5efe:${hex}`)
}

const badHeaders: Record<string, string>[] = [
  ...words(`connection content-length expect host keep-alive proxy-authenticate proxy-authorization
    proxy-connection te trailer transfer-encoding upgrade Host HOST Transfer-Encoding`).map(
    (name) => ({
      [name]: 'chunked',
    }),
  ),
  ...[
    'a\r\nHost: 127.0.0.1',
    'a\nb',
    'a\rb',
    'a\0b',
    '\u010d\u010aHost: a',
    'a\u2028b',
    '\u007f',
  ].map((value) => ({ 'x-note': value })),
  ...['x\r\nHost', 'x y', 'x:y', '', 'x\0', ':authority', 'hóst', 'x\t'].map((name) => ({
    [name]: 'a',
  })),
]

const mixed = [
  [standIn, '127.0.0.1'],
  ['127.0.0.1', standIn],
  [standIn, '::1'],
  [standIn, standIn, '10.0.0.1'],
  ['93.184.216.34', '2606:4700::1111', 'fd00::1'],
  [standIn, '::ffff:127.0.0.1'],
  [standIn, 'fe80::1%lo'],
  [standIn, ''],
]

const spelledAddresses = ([port]: Ports): Vector[] => [
  ...words(`${ipv4Forms} ${ipv6Forms}`).map((host) => ({
    name: `host ${host}`,
    address: `https://${host}:${port}/`,
    outcome: /not an IP address|not a valid URL/,
  })),
  ...words(innerNames).map((host) => ({
    name: `name ${host}`,
    address: `https://${host}:${port}/`,
    turns: [['127.0.0.1']],
    outcome: /private networks|full host name|not a valid URL/,
  })),
  ...oddAddresses(port).map((address) => ({
    name: `address ${address.slice(0, 90)}`,
    address,
    turns: [['127.0.0.1']],
    outcome: /./,
  })),
  ...userInfo(port).map((address) => ({ name: `user ${address}`, address, outcome: /user name/ })),
]

const answersAndHeaders = ([port]: Ports): Vector[] => [
  ...[...words(specialAnswers), ...words(inner).flatMap(hiddenForms)].map((answer) => ({
    name: `answer ${answer}`,
    address: sinkAt(port),
    turns: [[answer]],
    outcome: outside,
  })),
  ...mixed.map((answers) => ({
    name: `mixed answers ${answers.join(' ')}`,
    address: sinkAt(port),
    turns: [answers],
    outcome: outside,
  })),
  ...words(`0 1 22 25 53 80 444 2375 5432 6379 8080 8088 9200 10250 65535 ${port}`).map(
    (number) => ({
      name: `port ${number}`,
      address: `https://sink.example.com:${number}/`,
      turns: [['127.0.0.1']],
      call: { ports: [443] },
      outcome: /port is not one of 443/,
    }),
  ),
  ...badHeaders.map((headers) => ({
    name: `header ${JSON.stringify(headers)}`,
    address: sinkAt(port),
    turns: [[standIn]],
    call: { headers },
    outcome: /header/,
  })),
]

const besideTheList = ([port, secondPort, thirdPort]: Ports): Vector[] =>
  words(`http://127.0.0.1:${port}/ http://127.0.0.1:${thirdPort}/ http://127.0.0.2:${secondPort}/
    http://[::ffff:127.0.0.1]:${secondPort}/ http://localhost:${secondPort}/ http://0:${secondPort}/
    http://ollama.example.com:${port}/ http://ollama.example.com.:${secondPort}/
    http://ollama.example.com.evil.example.net:${secondPort}/ http://a.ollama.example.com:${secondPort}/
    http://ollama.example.com:${secondPort}@127.0.0.1:${port}/ https://ollama.example.com:${port}/
    https://evil.example.net:${port}/?ollama.example.com:${secondPort}`).map((address) => ({
    name: `beside the operator's list ${address}`,
    address,
    turns: [['127.0.0.1']],
    privateTargets: [`127.0.0.1:${secondPort}`, `ollama.example.com:${secondPort}`],
    outcome: /./,
  }))

const redirectsAndProxies = ([port, secondPort]: Ports): Vector[] => [
  ...[301, 302, 303, 307, 308].flatMap((status) =>
    [`https://127.0.0.1:${port}/`, `https://[::1]:${secondPort}/`, '//localhost/'].map((to) => ({
      name: `redirect ${status} to ${to}`,
      address: `${sinkAt(port)}redirect/${status}?to=${encodeURIComponent(to)}`,
      turns: [[standIn], ['127.0.0.1']],
      outcome: status,
    })),
  ),
  ...words('HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy').map((name) => ({
    name: `proxy from ${name}`,
    address: sinkAt(port),
    turns: [[standIn]],
    environment: { [name]: `http://127.0.0.1:${port}`, NODE_USE_ENV_PROXY: '1', NO_PROXY: '' },
    outcome: 200,
  })),
]
