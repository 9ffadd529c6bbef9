from unstuck.diagnosis.readings.telling import error_of as error_of
from unstuck.diagnosis.readings.tool_marks import read as read
from unstuck.diagnosis.readings.values import FailedTest as FailedTest
from unstuck.diagnosis.readings.values import Finding as Finding
from unstuck.diagnosis.readings.values import Reading as Reading
