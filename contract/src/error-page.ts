import { type Endpoint, errorsOf, errorsOfAnyRequest } from './endpoint.ts'
import { type ErrorCode, errorCodes, errors } from './error.ts'

/** Renders docs/errors.md. The `doc_url` of an error body points to a heading of this page. */
export function toErrorPage(endpoints: readonly Endpoint[]): string {
  const sections = errorCodes.map((code) => {
    const { status, type, meaning } = errors[code]
    return [
      `## ${code}`,
      '',
      `${status}, \`${type}\`. ${meaning}`,
      '',
      placesOf(code, endpoints),
      '',
    ].join('\n')
  })
  return `${[introduction, ...sections].join('\n').trimEnd()}\n`
}

function placesOf(code: ErrorCode, endpoints: readonly Endpoint[]): string {
  if (errorsOfAnyRequest.some((each) => each === code)) return 'Answered by any path.'
  const places = endpoints.filter((endpoint) => errorsOf(endpoint).includes(code))
  return places.length === 0
    ? (unlisted[code] ?? 'No endpoint answers it yet.')
    : `Answered by ${places.map(({ id }) => `\`${id}\``).join(', ')}.`
}

/** Errors of requests that have no endpoint, so no endpoint lists them. */
const unlisted: Partial<Record<ErrorCode, string>> = {
  route_not_found: 'Answered by paths without an endpoint.',
  method_not_allowed: 'Answered by paths that have other methods.',
}

const introduction = `# Errors

Generated from \`contract/src/error.ts\` by \`./dev generate\`. A \`code\` is stable; \`message\` is for people and may change.
Every answer has its request id in the headers \`x-request-id\` and \`request-id\`: quote it when you report a problem.
The shape of an error body depends on the path, see [the specification](specification/errors.md#families). On
\`/v1/responses\` OpenAI's official clients and the AI SDK get the object that they read, all others the flat body, unless the
operator chooses one of the two for everybody with \`RESPONSES_ERRORS\`.
`
