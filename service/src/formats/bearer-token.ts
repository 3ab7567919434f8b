/** The credential header of OpenAI's API and of most servers that imitate it. */
export const bearerToken = (secret: string) => ({ authorization: `Bearer ${secret}` })
