import type { CallChecks } from '#inference/enforcement/call-checks.ts'
import type { OpenChecks } from '#inference/enforcement/create-checks.ts'
import type { Findings } from '#inference/enforcement/findings.ts'

export type FakeChecks = {
  found?: Partial<Findings>
  checks?: Partial<Omit<CallChecks, 'request' | 'findings'>>
}

/** Checks that find this and do this, and otherwise allow every call. */
export const openFakeChecks =
  (make: (findings: Findings) => FakeChecks = () => ({})): OpenChecks =>
  async (_, request, findings) => {
    const { found, checks } = make(findings)
    Object.assign(findings, found)
    return {
      request,
      growthMost: 0,
      findings,
      beforeHold: async () => undefined,
      afterHold: async () => undefined,
      guard: (callModel) => callModel(),
      ...checks,
    }
  }
