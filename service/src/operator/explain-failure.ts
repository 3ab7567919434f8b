import { isStoreAway } from '#platform/to-api-error.ts'

const migrate = 'Run `./dev migrate` (in the image: `gatehouse migrate`)'

/** An error as a sentence that says what to do, where we know it. */
export function explainCommandFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const state = 'code' in error ? String(error.code) : ''
  switch (state) {
    case '42P01': // undefined_table
    case '3F000': // invalid_schema_name
      return `The database has no Gatehouse tables yet, or not all of them. ${migrate}, then try again.`
    case '3D000': // invalid_catalog_name
      return `The database of DATABASE_URL does not exist (${error.message}). Create it, for example with createdb. ${migrate}, then try again.`
    default:
  }
  if (isRefusedLogin(state)) {
    return `The database refuses the connection: ${error.message}. Check DATABASE_URL.`
  }
  const isConnected = /^[0-9A-Z]{5}$/.test(state)
  if (isConnected || !isStoreAway(error)) return error.message
  return `The database cannot be reached: ${reasonOf(error)}. Check DATABASE_URL, and that PostgreSQL is running.`
}

const isRefusedLogin = (state: string) => state.startsWith('28')

/** Where a host has several addresses, the message is empty and the reasons are inside. */
function reasonOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : String(first)
}

const settings = {
  DATABASE_URL: 'the PostgreSQL database, such as postgres://gatehouse@127.0.0.1:5432/gatehouse',
  MASTER_KEYS: 'the secret of the service; for a new installation "1:$(openssl rand -base64 32)"',
}

/** Throws one error for all settings that are missing, and says what each of them is. */
export function requireSettings(
  required: readonly (keyof typeof settings)[],
  environment: Readonly<Record<string, string | undefined>>,
) {
  const missing = required.filter((name) => !environment[name] && !environment[`${name}_FILE`])
  if (missing.length === 0) return
  const names = new Intl.ListFormat('en').format(missing)
  const verb = missing.length === 1 ? 'is' : 'are'
  const lines = missing.map((name) => `  ${name}: ${settings[name]}`)
  throw new Error(
    `${names} ${verb} not set. Set the environment as for the service:\n${lines.join('\n')}`,
  )
}
