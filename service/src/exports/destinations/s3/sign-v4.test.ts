import { expect, test } from 'vitest'

import { encodeKey, signRequest } from './sign-v4.ts'

// The examples that Amazon has published for S3 ("Signature Calculations for the Authorization Header").
const credentials = {
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
}
const at = new Date('2013-05-24T00:00:00Z')
const host = 'https://examplebucket.s3.amazonaws.com'

test("Amazon's example of storing an object", () => {
  const request = {
    method: 'PUT',
    url: new URL(`${host}/${encodeKey('test$file.text')}`),
    headers: {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    },
    body: Buffer.from('Welcome to Amazon S3.'),
  }
  expect(signRequest(request, credentials, at)).toEqual({
    ...request.headers,
    'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    'x-amz-date': '20130524T000000Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
      'SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, ' +
      'Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  })
})

test("Amazon's example of reading a part of an object", () => {
  const url = new URL(`${host}/test.txt`)
  const headers = { Range: 'bytes=0-9' }
  const request = { method: 'GET', url, headers, body: new Uint8Array() }
  expect(signRequest(request, credentials, at)['authorization']).toContain(
    'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  )
})

test('a key is encoded as S3 wants it, and stays so in a URL', () => {
  const path = `/${encodeKey("a b/ä!'()*~=_-.$/c")}`
  expect(path).toBe('/a%20b/%C3%A4%21%27%28%29%2A~%3D_-.%24/c')
  expect(new URL(host + path).pathname).toBe(path)
})
