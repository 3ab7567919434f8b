import { type Endpoint, errorsOf } from './endpoint.ts'
import { type ErrorCode, errorCodes, errors } from './error.ts'

/** Renders docs/errors.md. The `doc_url` of an error body points to a heading of this page. */
export function toErrorPage(endpoints: readonly Endpoint[]): string {
  const sections = errorCodes.map((code) => {
    const { status, type, meaning } = errors[code]
    const places = endpoints.filter((endpoint) => errorsOf(endpoint).includes(code))
    return [
      `## ${code}`,
      '',
      `${status}, \`${type}\`. ${meaning}`,
      '',
      places.length === 0
        ? (unlisted[code] ?? 'No endpoint answers it yet.')
        : `Answered by ${places.map(({ id }) => `\`${id}\``).join(', ')}.`,
      '',
    ].join('\n')
  })
  return `${[introduction, ...sections].join('\n').trimEnd()}\n`
}

const anyRoute = 'Answered by any path.'

/** Errors that are answered before an endpoint is found, so no endpoint lists them. */
const unlisted: Partial<Record<ErrorCode, string>> = {
  route_not_found: 'Answered by paths without an endpoint.',
  method_not_allowed: 'Answered by paths that have other methods.',
  request_timeout: anyRoute,
  url_too_long: anyRoute,
  headers_too_large: anyRoute,
}

const introduction = `# Errors

Generated from \`contract/src/error.ts\` by \`./dev generate\`. A \`code\` is stable; \`message\` is for people and may change.
Every answer has its request id in the headers \`x-request-id\` and \`request-id\`: quote it when you report a problem.
`
