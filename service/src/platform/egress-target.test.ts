import { expect, test } from 'vitest'

import {
  checkHeaders,
  checkTarget,
  EgressBlocked,
  readPrivateTarget,
  type TargetRules,
} from './egress-target.ts'

const nobody = { privateTargets: [] }

function refusal(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof EgressBlocked) return error.reason
    throw error
  }
  return 'accepted'
}
const reasonFor = (address: string, rules: TargetRules = nobody) =>
  refusal(() => checkTarget(address, rules))

test.each([
  ['https://sink.example.com', 'https://sink.example.com/'],
  ['HTTPS://Sink.Example.COM:443/a?b=c', 'https://sink.example.com/a?b=c'],
  ['https://sink.example.com/path#fragment', 'https://sink.example.com/path'],
  ['https://bücher.example.com/', 'https://xn--bcher-kva.example.com/'],
  ['https://a-b.1x.example.co/?u=user@host', 'https://a-b.1x.example.co/?u=user@host'],
])('a public https name is accepted: %s', (address, href) => {
  expect(checkTarget(address, nobody).href).toBe(href)
})

test.each([
  ['http://sink.example.com/', /must start with https:\/\/\./],
  ['ftp://sink.example.com/', /must start with https/],
  ['https:sink.example.com', /must start with https/],
  ['https:///sink.example.com', /must start with https/],
  ['sink.example.com', /must start with https/],
  ['', /must start with https/],
  ['https://user@sink.example.com/', /user name/],
  ['https://@sink.example.com/', /user name/],
  ['https://:@sink.example.com/', /user name/],
  ['https://sink.example.com\\@evil.example.net/', /backslash/],
  ['https://sink.exam\tple.com/', /control character/],
  [' https://sink.example.com/', /space/],
  ['https://[sink.example.com/', /not a valid URL/],
  ['https://sink.example.com:99999/', /not a valid URL/],
  ['https://8.8.8.8/', /not an IP address/],
  ['https://134744072/', /not an IP address/],
  ['https://[2606:4700::1111]/', /not an IP address/],
  ['https://sink/', /full host name/],
  ['https://sink.example.com./', /full host name/],
  ['https://sink..example.com/', /full host name/],
  ['https://-sink.example.com/', /full host name/],
  ['https://si_nk.example.com/', /full host name/],
  ['https://*.example.com/', /full host name/],
  [`https://${'a'.repeat(64)}.example.com/`, /full host name/],
  [`https://${'a.'.repeat(125)}example.com/`, /full host name/],
  ['https://sink.internal/', /private networks/],
  ['https://sink.local./', /private networks/],
  ['https://sink.example.com:8443/', /port is not one of 443/],
  [`https://sink.example.com/${'a'.repeat(2048)}`, /longer than 2048/],
])('%s is refused', (address, reason) => {
  expect(reasonFor(address)).toMatch(reason)
})

test('an address of 2048 characters is still read', () => {
  const start = 'https://sink.example.com/'
  expect(reasonFor(start.padEnd(2048, 'a'))).toBe('accepted')
  expect(reasonFor(start.padEnd(2049, 'a'))).toMatch(/longer/)
})

test('ports come from the list alone', () => {
  const ports = [443, 8088, 9200, 9243]
  for (const port of ports) {
    expect(reasonFor(`https://sink.example.com:${port}/`, { ...nobody, ports })).toBe('accepted')
  }
  expect(reasonFor('https://sink.example.com:80/', { ...nobody, ports })).toMatch(
    /8088, 9200, 9243/,
  )
  expect(reasonFor('https://sink.example.com/', { ...nobody, ports: [8088] })).toMatch(/port/)
})

const listed = {
  privateTargets: ['ollama:11434', '10.1.2.3:80', '[::1]:8080', 'Splunk.corp:8088', '127.1:443'],
}

test.each([
  'http://ollama:11434/api',
  'https://ollama:11434/api',
  'http://10.1.2.3/',
  'http://167838211:80/',
  'http://[0:0::1]:8080/',
  'https://splunk.CORP:8088/',
  'https://127.0.0.1/',
])('the operator may open %s by listing it', (address) => {
  expect(reasonFor(address, listed)).toBe('accepted')
  expect(reasonFor(address)).not.toBe('accepted')
})

test.each([
  ['http://ollama:11435/', /https/],
  ['http://ollama.:11434/', /https/],
  ['https://ollama/', /full host name/],
  ['https://10.1.2.3/', /IP address/],
  ['https://10.1.2.4:80/', /IP address/],
  ['http://127.0.0.1/', /https/],
  ['http://me@ollama:11434/', /user name/],
  ['ftp://ollama:11434/', /https/],
  ['https://evil.ollama:11434/', /port/],
])('host and port must both match: %s', (address, reason) => {
  expect(reasonFor(address, listed)).toMatch(reason)
})

test.each([
  '',
  'ollama',
  'ollama:',
  ':80',
  'ollama:http',
  'http://ollama:80',
  'ollama:80/',
  '*:80',
])('a bad entry %j of the operator stops the process instead of opening something', (entry) => {
  expect(() => readPrivateTarget(entry)).toThrow(/write host:port/)
})

test.each(['me@ollama:80', 'ollama:99999', '::1:80', '10.0.0.0/8:80', 'a b:80', 'a:80,b:80'])(
  'a malformed entry %j is refused',
  (entry) => {
    expect(() => readPrivateTarget(entry)).toThrow(/write host:port/)
  },
)

test('a refusal carries its code and a sentence short enough for an answer', () => {
  const error = new EgressBlocked('Because.')
  expect(error).toMatchObject({ code: 'EGRESS_BLOCKED', reason: 'Because.', message: 'Because.' })
  expect(reasonFor(`https://${'x'.repeat(2000)}`).length).toBeLessThan(300)
})

test('ordinary headers pass, and a refused value is not repeated', () => {
  const headers = { authorization: 'Bearer abc', 'X-Scope': 'a\tb', 'x-latin': 'é', 'x-empty': '' }
  expect(refusal(() => checkHeaders(headers))).toBe('accepted')
  expect(refusal(() => checkHeaders({ authorization: 'canary\r\n' }))).toMatch(/header value/)
  expect(refusal(() => checkHeaders({ authorization: 'canary\r\n' }))).not.toContain('canary')
})
