/** Asks before an edit that was not sent is left. */
import { Button, Group, Modal, Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'

export interface LeaveDialogProps {
  readonly isDirty: boolean
  /** True right after it was sent: the state that says so may lag behind. */
  readonly isSent: () => boolean
  readonly drop: () => void
}

export function LeaveDialog({ isDirty, isSent, drop }: LeaveDialogProps) {
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty && !isSent(),
    enableBeforeUnload: () => isDirty && !isSent(),
    withResolver: true,
  })
  const isAsking = blocker.status === 'blocked'
  const stay = () => blocker.reset?.()
  return (
    <Modal
      opened={isAsking}
      onClose={stay}
      title="Leave the editor?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Text size="sm" mb="md">
        Your edit was not sent. This tab keeps the draft until you come back or discard it.
      </Text>
      <Group justify="flex-end">
        <Button
          variant="default"
          onClick={() => {
            drop()
            blocker.proceed?.()
          }}
        >
          Discard the draft
        </Button>
        <Button variant="default" onClick={() => blocker.proceed?.()}>
          Leave, keep the draft
        </Button>
        <Button data-autofocus onClick={stay}>
          Stay
        </Button>
      </Group>
    </Modal>
  )
}
