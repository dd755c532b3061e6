/** A letter in short, beside the list it is in. It takes no focus: keys go on moving through the list. */

import { Anchor, CloseButton, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { letterQuery } from '../api/queries.ts'
import type { LetterDetail, LetterKey } from '../api/types.ts'
import { LetterLink, SignatureLink } from '../kit/links.tsx'
import { Shown } from '../kit/page.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { visible } from '../kit/visible.ts'
import { NoLetter } from '../letter/no-letter.tsx'
import { Time } from '../time/time.tsx'

/** More of a payload is on the page of the letter. */
const MOST_SHOWN = 1_500

export interface SidePanelProps {
  readonly letter: LetterKey
  readonly close: () => void
}

export function SidePanel({ letter, close }: SidePanelProps) {
  const read = useQuery(letterQuery(letter))
  return (
    <Paper component="aside" aria-label="Letter in short" withBorder p="md" className="side-panel">
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb="sm">
        <Title order={2} size="h5" className="wrapped">
          {letter.engine} {visible(read.data?.instanceId ?? letter.rowKey)}
        </Title>
        <CloseButton aria-label="Close the panel" onClick={close} />
      </Group>
      <Shown read={read} what="the letter" unknown={<NoLetter letter={letter} />}>
        {(detail) => <InShort letter={detail} />}
      </Shown>
    </Paper>
  )
}

function InShort({ letter }: { readonly letter: LetterDetail }) {
  const payload = letter.editedMessage ?? letter.originalMessage
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <StatusBadge letter={letter} />
        <Text size="sm">
          {letter.dequeueCount} {letter.dequeueCount === 1 ? 'attempt' : 'attempts'}, the last{' '}
          <Time at={letter.lastFailureAtUtc} />
        </Text>
      </Group>
      <Part title="Error">
        <Text size="sm" fw={600}>
          {letter.errorClass}
        </Text>
        <pre className="bytes">{visible(letter.errorMessage.slice(0, MOST_SHOWN))}</pre>
        <Text size="sm" mt={4}>
          <SignatureLink signature={letter.signature}>Letters with this error</SignatureLink>
        </Text>
      </Part>
      <Part title={letter.editedMessage === null ? 'Payload' : 'Payload, edited'}>
        <pre className="bytes">
          {visible(payload.slice(0, MOST_SHOWN))}
          {payload.length > MOST_SHOWN ? '…' : ''}
        </pre>
      </Part>
      {letter.resolutionNotes !== null && (
        <Part title="Notes">
          <Text size="sm" className="wrapped">
            {letter.resolutionNotes}
            {letter.resolvedBy === null ? '' : `, ${letter.resolvedBy}`}
          </Text>
        </Part>
      )}
      <Group gap="md">
        <LetterLink letter={letter}>Open</LetterLink>
        <Anchor
          inherit
          renderRoot={(props) => (
            <Link
              to="/letters/$engine/$rowKey"
              params={{ engine: letter.engine, rowKey: letter.rowKey }}
              search={{ tab: 'same-key' }}
              {...props}
            />
          )}
        >
          Same key
        </Anchor>
      </Group>
    </Stack>
  )
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div>
      <Text size="xs" fw={600} c="var(--quiet)" mb={2}>
        {title}
      </Text>
      {children}
    </div>
  )
}
