const hosts: ReadonlySet<string> = new Set(['api.anthropic.com', 'api.openai.com'])

/** The two vendors document what their members cost, and fetch media from networks of their own. */
export const isVendorHost = (baseUrl: string): boolean => hosts.has(new URL(baseUrl).hostname)
