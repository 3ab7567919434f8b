/** Twenty rules as administrators write them: key prefixes, lists of words, phrases and plain names. */
const patterns = [
  String.raw`\b(?:sk|rk|pk)[-_](?:live|test|proj|admin)[-_][A-Za-z0-9]{16,40}\b`,
  String.raw`\b(?:AKIA|ASIA|AROA|AIDA|ANPA|ANVA|AGPA)[0-9A-Z]{16}\b`,
  String.raw`\b(?:ghp|gho|ghu|ghs|ghr|glpat|xoxb|xoxp)[-_][A-Za-z0-9]{20,40}\b`,
  String.raw`-----BEGIN (?:RSA |EC |OPENSSH |ENCRYPTED )?PRIVATE KEY-----`,
  String.raw`\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b`,
  String.raw`\b(?:4[0-9]{3}|5[1-5][0-9]{2}|6011)(?:[ -]?[0-9]{4}){3}\b`,
  String.raw`https?://[a-z0-9.-]{1,30}\.(?:internal|corp|intranet|local)\b`,
  String.raw`(?i)\b(?:merger|acquisition|takeover|divestiture|spin-off|buyout|tender offer|going private|reverse split|proxy fight|poison pill|golden parachute|earn-out|letter of intent|due diligence|data room)s?\b`,
  String.raw`(?i)\b(?:layoff|redundancy|severance|furlough|hiring freeze|headcount reduction|restructuring charge|plant closure|site closure|voluntary separation|early retirement programme|works council notice)s?\b`,
  String.raw`(?i)\b(?:diagnosed with|prescribed|admitted to|discharged from|medical record of|blood type of|insurance number of|patient file of|lab results of) [a-z]{2,20}\b`,
  String.raw`(?i)\b(?:ignore|disregard|forget) (?:all |any )?(?:previous|prior|earlier) (?:instructions|rules|prompts)\b`,
  String.raw`(?i)\b(?:wire|transfer|send) .{1,20} to (?:account|iban|wallet)\b`,
  String.raw`(?i)\b(?:internal use only|strictly confidential|attorney-client privilege|not for distribution|under embargo until|draft, do not forward)\b`,
  String.raw`(?i)\bproject (?:falcon|eagle|heron|osprey|kestrel|merlin|harrier|goshawk)\b`,
]

const literals = ['Project Nightjar', 'Northwind Holdings', 'unreleased roadmap']
const lists = [
  ['EMEA-PRICE-LIST', 'partner rebate table', 'floor price'],
  ['Kessler', 'Vandermeer', 'Oyelaran', 'Tanabe'],
  ['build-farm-01', 'vault-prod', 'bastion-eu', 'ci-runner'],
]

export const exactRules: readonly string[] = [
  ...patterns.map((pattern) => `cel: text.matches(r"${pattern}")`),
  ...literals.map((literal) => `cel: text.contains(${JSON.stringify(literal)})`),
  ...lists.map((list) => `cel: text.containsAny(${JSON.stringify(list)})`),
]

/** What one of the rules refuses, to see that they are in force. */
export const forbidden = 'Project Nightjar'
