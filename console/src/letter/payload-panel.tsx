/** The payload: what it is, how it came, and what an operator made of it. */
import { Group, SegmentedControl, Stack } from '@mantine/core'
import { useEffect, useMemo, useState } from 'react'
import { bytesOf, type TextEncoding } from '../../../src/client/bytes.ts'
import { isJson } from '../../../src/core/json/tokens.ts'
import type { LetterDetail } from '../api/types.ts'
import { Fact, Facts } from '../kit/facts.tsx'
import { byteSize, grouped } from '../time/format.ts'
import { PayloadView } from './payload-view.tsx'

type Version = 'original' | 'edited'

export function PayloadPanel({ letter }: { readonly letter: LetterDetail }) {
  const { editedMessage, editedMessageEncoding } = letter
  const [version, setVersion] = useState<Version>(editedMessage === null ? 'original' : 'edited')
  const isEdited = version === 'edited' && editedMessage !== null
  const text = isEdited ? editedMessage : letter.originalMessage
  const encoding = isEdited ? (editedMessageEncoding ?? 'utf8') : letter.originalMessageEncoding
  const bytes = useMemo(() => bytesOf(text, encoding), [text, encoding])
  const hash = useSha256(isEdited ? bytes : null)
  return (
    <Stack gap="sm">
      {editedMessage !== null && (
        <Group>
          <SegmentedControl
            size="xs"
            aria-label="Which payload"
            data={[
              { value: 'edited', label: 'Edited: a retry sends this' },
              { value: 'original', label: 'Original' },
            ]}
            value={version}
            onChange={(value) => setVersion(value as Version)}
          />
        </Group>
      )}
      <PayloadView text={text} encoding={encoding} label="Payload" />
      <Facts>
        <Fact name="Size">
          {byteSize(bytes.length)} ({grouped(bytes.length)} bytes)
        </Fact>
        <Fact name="Type">{typeOf(text, encoding)}</Fact>
        <Fact name="Encoding">{letter.encoding}</Fact>
        <Fact name="Kind">{letter.kind}</Fact>
        <Fact name="SHA-256">{isEdited ? hash : letter.originalMessageSha256}</Fact>
      </Facts>
    </Stack>
  )
}

function typeOf(text: string, encoding: TextEncoding): string {
  if (text === '') return 'Empty'
  if (encoding === 'base64') return 'Binary'
  return isJson(text) ? 'JSON' : 'Text (UTF-8)'
}

/** Browsers hash only on pages that came over a safe way; elsewhere it stays unknown. */
function useSha256(bytes: Uint8Array | null): string {
  const [hash, setHash] = useState('')
  useEffect(() => {
    setHash('')
    if (bytes === null || globalThis.crypto.subtle === undefined) return
    let isCurrent = true
    void crypto.subtle.digest('SHA-256', Uint8Array.from(bytes)).then((digest) => {
      if (!isCurrent) return
      setHash(Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join(''))
    })
    return () => {
      isCurrent = false
    }
  }, [bytes])
  return hash
}
